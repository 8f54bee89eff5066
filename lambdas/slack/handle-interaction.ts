import type { Decided, Deciding } from '../approval/decide.ts';
import { type HttpEvent, type HttpResponse, json } from '../entry/http.ts';
import { type Approval, isOpen, runIdOf } from '../run/approval.ts';
import { CountersignError, refusalOf } from '../run/errors.ts';
import type { RunStore } from '../run/run-store.ts';
import { type Modal, sentence, shortened } from './block-kit.ts';
import { ACTIONS, type Seen } from './card/approval-card.ts';
import { pendingMessage } from './card/pending-list.ts';
import { openView } from './card/slack-cards.ts';
import {
  EDIT_CALLBACK,
  editModal,
  firstInput,
  hasInputs,
  noticeModal,
  REJECT_CALLBACK,
  rejectModal,
  typedEdit,
  typedReason,
} from './modal/decision-modals.ts';
import { SHOW_ALL_CALLBACK, showAllModal } from './modal/show-all-modal.ts';
import { type Responder, respond } from './reply-to-click.ts';
import {
  type BlockActions,
  carried,
  Interaction,
  interactionIn,
  MoreValue,
  SeenValue,
  ShownPageValue,
  type ViewSubmission,
} from './request/payloads.ts';
import { bodyText, type SlackEndpoint, tenantSpeaking } from './request/signed-request.ts';
import { type KnownPeople, notKnown, personSpeaking } from './request/slack-user.ts';

export interface Interactivity extends SlackEndpoint, Responder, KnownPeople {
  runs: Pick<RunStore, 'approval' | 'pendingApprovals'>;
  decide(deciding: Deciding): Promise<Decided>;
}

/** Who acts, for which tenant: both proven. */
interface Actor {
  tenant: string;
  person: string;
}

const ACKNOWLEDGED: HttpResponse = { statusCode: 200, body: '' };
/** Slack documents no limit; more than this nobody reads below an input. */
const ERROR_MAX_CHARACTERS = 500;
const NOT_OURS = 'This is from an older card; look for the newest one.';

/** A click or a submitted modal, signed by Slack for a tenant, by a person that tenant knows. */
export async function interact(slack: Interactivity, event: HttpEvent): Promise<HttpResponse> {
  const said = interactionIn(bodyText(event));
  const tenant = await tenantSpeaking(slack, event, said?.speaker.team);
  const interaction = Interaction.safeParse(said?.payload);
  // Other kinds of interaction are acknowledged, or Slack would tell people that we are broken.
  if (!said || !interaction.success) return ACKNOWLEDGED;
  const { identity } = said.speaker;
  const person = await personSpeaking(slack, tenant, identity);
  if (interaction.data.type === 'view_submission') {
    if (!person) return shownError(interaction.data, notKnown(identity));
    return submitted(slack, { tenant, person: person.id }, interaction.data);
  }
  const { response_url: responseUrl } = interaction.data;
  const told = person
    ? await clicked(slack, { tenant, person: person.id }, interaction.data).catch(refusal)
    : notKnown(identity);
  if (told !== undefined) await respond(slack, tenant, responseUrl, sentence(told));
  return ACKNOWLEDGED;
}

/** What to tell the person, if anything: most of it they see on the card. */
async function clicked(slack: Interactivity, actor: Actor, click: BlockActions): Promise<string | undefined> {
  const { tenant } = actor;
  const [{ action_id: action, value }] = click.actions;
  if (action === ACTIONS.morePending) {
    const people = await slack.definitions.people(tenant);
    const message = await pendingMessage({ runs: slack.runs, people }, tenant, carried(MoreValue, value)?.after);
    await respond(slack, tenant, click.response_url, message);
    return undefined;
  }
  if (!Object.values<string>(ACTIONS).includes(action)) return undefined;
  const seen = carried(SeenValue, value);
  if (!seen) return NOT_OURS;
  if (action === ACTIONS.approve) return approve(slack, actor, seen);
  const approval = await read(slack, tenant, seen);
  if (action !== ACTIONS.showAll) assertSame(approval, seen);
  const modal = modalFor(action, approval);
  if (!modal) return 'All of it is too long for Slack to edit; use the API.';
  // Slack lets a click open a modal for three seconds: it cannot wait for anything.
  await openView(await slack.connections.open(tenant, 'slack'), click.trigger_id, modal);
  return undefined;
}

async function approve(slack: Interactivity, { tenant, person }: Actor, seen: Seen): Promise<string | undefined> {
  const deciding: Deciding = { tenant, person, via: 'slack', decision: { kind: 'approve' }, ...seen };
  const decided = await slack.decide(deciding);
  if (decided.outcome === 'already') return 'You had approved this before; nothing changed.';
  if (decided.outcome !== 'counted') return undefined;
  return `Your approval is recorded. ${decided.missing} more of ${decided.approval.requirement.quorum} must approve.`;
}

function modalFor(action: string, approval: Approval): Modal | undefined {
  if (action === ACTIONS.reject) return rejectModal(approval);
  if (action === ACTIONS.showAll) return showAllModal(approval, 0);
  const modal = editModal(approval);
  return hasInputs(modal) ? modal : undefined;
}

async function submitted(slack: Interactivity, actor: Actor, submission: ViewSubmission): Promise<HttpResponse> {
  try {
    return await carryOut(slack, actor, submission);
  } catch (error) {
    return shownError(submission, refusal(error));
  }
}

async function carryOut(slack: Interactivity, actor: Actor, submission: ViewSubmission): Promise<HttpResponse> {
  const { view } = submission;
  const { tenant, person } = actor;
  const typed = view.state.values;
  const seen = carried(SeenValue, view.private_metadata);
  if (!seen) return shownError(submission, NOT_OURS);
  const deciding = { tenant, person, via: 'slack' as const, ...seen };
  switch (view.callback_id) {
    case REJECT_CALLBACK: {
      const reason = typedReason(typed);
      if (reason === '') return shownError(submission, 'Say why, in a few words.');
      await slack.decide({ ...deciding, decision: { kind: 'reject', reason } });
      return ACKNOWLEDGED;
    }
    case EDIT_CALLBACK: {
      const approval = await read(slack, tenant, seen);
      assertSame(approval, seen);
      const edit = typedEdit(approval.action?.fields ?? {}, typed);
      if ('errors' in edit) return json(200, { response_action: 'errors', errors: edit.errors });
      if (Object.keys(edit.changed).length === 0) return shownError(submission, 'Nothing was changed.');
      await slack.decide({ ...deciding, decision: { kind: 'edit', fields: edit.changed } });
      return ACKNOWLEDGED;
    }
    case SHOW_ALL_CALLBACK: {
      const page = carried(ShownPageValue, view.private_metadata)?.page ?? 0;
      const next = showAllModal(await read(slack, tenant, seen), page + 1);
      return json(200, { response_action: 'update', view: next });
    }
    default:
      return ACKNOWLEDGED;
  }
}

async function read({ runs }: Interactivity, tenant: string, { approvalId }: Seen): Promise<Approval> {
  const approval = await runs.approval(tenant, runIdOf(approvalId), approvalId);
  if (!approval) throw new CountersignError('NOT_FOUND', 'There is no such approval any more.');
  return approval;
}

/** Nobody writes a reason, or an edit, for something that is decided or has changed already. */
function assertSame(approval: Approval, { actionHash }: Seen): void {
  if (!isOpen(approval)) throw new CountersignError('APPROVAL_CLOSED', `This is ${approval.status} already.`);
  if (approval.actionHash === actionHash) return;
  throw new CountersignError('APPROVAL_STALE', 'What is to be approved has changed since; look at the card again.');
}

/** The sentence for the person, if the failure is theirs to know; any other is thrown on. */
function refusal(error: unknown): string {
  const refused = refusalOf(error);
  if (refused) return refused.message;
  throw error;
}

/** Said at the first input. A modal that has none, to read in, is replaced by one that says it. */
function shownError({ view }: ViewSubmission, message: string): HttpResponse {
  const block = firstInput(view.state.values);
  if (block === undefined) return json(200, { response_action: 'update', view: noticeModal(message) });
  return json(200, { response_action: 'errors', errors: { [block]: shortened(message, ERROR_MAX_CHARACTERS) } });
}
