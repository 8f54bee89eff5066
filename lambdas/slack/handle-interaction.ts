import type { Decided, Deciding } from '../approval/decide.ts';
import { type HttpEvent, type HttpResponse, json, signedBody } from '../entry/http.ts';
import { type Approval, isOpen, runIdOf } from '../run/approval.ts';
import { CountersignError, refusalOf } from '../run/errors.ts';
import type { RunStore } from '../run/run-store.ts';
import { type Modal, sentence, shortened } from './block-kit.ts';
import { ACTIONS, type Seen } from './card/approval-card.ts';
import { pendingList } from './card/pending-list.ts';
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
import { type ReplyPorts, replyToClick } from './reply-to-click.ts';
import {
  type BlockActions,
  Interaction,
  MoreValue,
  parseInteraction,
  parseValue,
  SeenValue,
  ShownPageValue,
  type ViewSubmission,
} from './request/payloads.ts';
import { type SlackEndpoint, tenantOfRequest } from './request/signed-request.ts';
import { findSlackPerson, type KnownPeople, unknownUser } from './request/slack-user.ts';

export interface Interactivity extends SlackEndpoint, ReplyPorts, KnownPeople {
  runs: Pick<RunStore, 'approval' | 'pendingApprovals'>;
  decide(deciding: Deciding): Promise<Decided>;
}

/** An authenticated person of a tenant. */
interface Actor {
  tenant: string;
  person: string;
}

const ACKNOWLEDGED: HttpResponse = { statusCode: 200, body: '' };
/** Slack documents no limit; a longer text below an input is hard to read. */
const ERROR_MAX_CHARACTERS = 500;
const OLD_CARD = 'This card is out of date; use the newest one.';

/** Handles a click or a submitted modal, signed by Slack for a tenant, from a person of that tenant. */
export async function handleInteraction(slack: Interactivity, event: HttpEvent): Promise<HttpResponse> {
  const parsed = parseInteraction(signedBody(event).toString('utf8'));
  const tenant = await tenantOfRequest(slack, event, parsed?.user.team);
  const interaction = Interaction.safeParse(parsed?.payload);
  // Other interactions are acknowledged, or Slack would show an error to the person.
  if (!parsed || !interaction.success) return ACKNOWLEDGED;
  const { identity } = parsed.user;
  const person = await findSlackPerson(slack, tenant, identity);
  if (interaction.data.type === 'view_submission') {
    if (!person) return shownError(interaction.data, unknownUser(identity));
    return submitted(slack, { tenant, person: person.id }, interaction.data);
  }
  const { response_url: responseUrl } = interaction.data;
  const reply = person
    ? await clicked(slack, { tenant, person: person.id }, interaction.data).catch(refusal)
    : unknownUser(identity);
  if (reply !== undefined) await replyToClick(slack, tenant, responseUrl, sentence(reply));
  return ACKNOWLEDGED;
}

/** Returns a sentence for the person if the card itself does not show the result. */
async function clicked(slack: Interactivity, actor: Actor, click: BlockActions): Promise<string | undefined> {
  const { tenant } = actor;
  const [{ action_id: action, value }] = click.actions;
  if (action === ACTIONS.morePending) {
    const people = await slack.definitions.people(tenant);
    const message = await pendingList({ runs: slack.runs, people }, tenant, parseValue(MoreValue, value)?.after);
    await replyToClick(slack, tenant, click.response_url, message);
    return undefined;
  }
  if (!Object.values<string>(ACTIONS).includes(action)) return undefined;
  const seen = parseValue(SeenValue, value);
  if (!seen) return OLD_CARD;
  if (action === ACTIONS.approve) return approve(slack, actor, seen);
  const approval = await read(slack, tenant, seen);
  if (action !== ACTIONS.showAll) assertSame(approval, seen);
  const modal = modalFor(action, approval);
  if (!modal) return 'The fields are too long to edit in Slack; edit them with "countersign approvals edit".';
  // A click can open a modal for three seconds only.
  await openView(await slack.connections.open(tenant, 'slack'), click.trigger_id, modal);
  return undefined;
}

async function approve(slack: Interactivity, { tenant, person }: Actor, seen: Seen): Promise<string | undefined> {
  const deciding: Deciding = { tenant, person, via: 'slack', decision: { kind: 'approve' }, ...seen };
  const decided = await slack.decide(deciding);
  if (decided.outcome === 'already') return 'You have already approved this; nothing changed.';
  if (decided.outcome !== 'counted') return undefined;
  return `Your approval is recorded. ${decided.missing} more of ${decided.approval.requirement.quorum} are needed.`;
}

function modalFor(action: string, approval: Approval): Modal | undefined {
  if (action === ACTIONS.reject) return rejectModal(approval);
  if (action === ACTIONS.showAll) return showAllModal(approval, 0);
  const modal = editModal(approval);
  return hasInputs(modal) ? modal : undefined;
}

async function submitted(slack: Interactivity, actor: Actor, submission: ViewSubmission): Promise<HttpResponse> {
  try {
    return await handleSubmission(slack, actor, submission);
  } catch (error) {
    return shownError(submission, refusal(error));
  }
}

async function handleSubmission(slack: Interactivity, actor: Actor, submission: ViewSubmission): Promise<HttpResponse> {
  const { view } = submission;
  const { tenant, person } = actor;
  const typed = view.state.values;
  const seen = parseValue(SeenValue, view.private_metadata);
  if (!seen) return shownError(submission, OLD_CARD);
  const deciding = { tenant, person, via: 'slack' as const, ...seen };
  switch (view.callback_id) {
    case REJECT_CALLBACK: {
      const reason = typedReason(typed);
      if (reason === '') return shownError(submission, 'Enter a reason.');
      await slack.decide({ ...deciding, decision: { kind: 'reject', reason } });
      return ACKNOWLEDGED;
    }
    case EDIT_CALLBACK: {
      const approval = await read(slack, tenant, seen);
      assertSame(approval, seen);
      const edit = typedEdit(approval, typed);
      if ('errors' in edit) return json(200, { response_action: 'errors', errors: edit.errors });
      if (Object.keys(edit.changed).length === 0) return shownError(submission, 'Nothing was changed.');
      await slack.decide({ ...deciding, decision: { kind: 'edit', fields: edit.changed } });
      return ACKNOWLEDGED;
    }
    case SHOW_ALL_CALLBACK: {
      const page = parseValue(ShownPageValue, view.private_metadata)?.page ?? 0;
      const next = showAllModal(await read(slack, tenant, seen), page + 1);
      return json(200, { response_action: 'update', view: next });
    }
    default:
      return ACKNOWLEDGED;
  }
}

async function read({ runs }: Interactivity, tenant: string, { approvalId }: Seen): Promise<Approval> {
  const approval = await runs.approval(tenant, runIdOf(approvalId), approvalId);
  if (!approval) throw new CountersignError('NOT_FOUND', 'This approval no longer exists.');
  return approval;
}

/** Opens no reject or edit form for an approval that is decided or has changed. */
function assertSame(approval: Approval, { actionHash }: Seen): void {
  if (!isOpen(approval)) throw new CountersignError('APPROVAL_CLOSED', `This approval is already ${approval.status}.`);
  if (approval.actionHash === actionHash) return;
  throw new CountersignError('APPROVAL_STALE', 'The write has changed since you opened the card; read the card again.');
}

/** The sentence for the person if the error is meant for them; other errors are thrown again. */
function refusal(error: unknown): string {
  const refused = refusalOf(error);
  if (refused) return refused.message;
  throw error;
}

/** Shows the error at the first input, or replaces a modal without inputs. */
function shownError({ view }: ViewSubmission, message: string): HttpResponse {
  const block = firstInput(view.state.values);
  if (block === undefined) return json(200, { response_action: 'update', view: noticeModal(message) });
  return json(200, { response_action: 'errors', errors: { [block]: shortened(message, ERROR_MAX_CHARACTERS) } });
}
