import { type HttpEvent, type HttpResponse, json, signedBody } from '../entry/http.ts';
import { requestedTrigger } from '../intake/requested-trigger.ts';
import { type Starter, startAutomation, startableAutomation } from '../intake/start-automation.ts';
import type { Person } from '../people/people.ts';
import { may } from '../people/rights.ts';
import { hashOf } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import { deliveryKey } from '../run/idempotency.ts';
import type { RunStore } from '../run/run-store.ts';
import { type Message, sentence } from './block-kit.ts';
import { pendingList } from './card/pending-list.ts';
import { ephemeral } from './reply-to-click.ts';
import { parseCommand } from './request/payloads.ts';
import { type SlackEndpoint, tenantOfRequest } from './request/signed-request.ts';
import { findSlackPerson, type KnownPeople, unknownUser } from './request/slack-user.ts';
import { countsMessage, recentRuns } from './run-lists.ts';

const HELP =
  'Commands: "/countersign pending" shows the pending approvals and who can decide them, "list" the newest runs, ' +
  '"status" how many runs need attention, "run AUTOMATION [TITLE]" starts a run.';

export interface Commands extends SlackEndpoint, KnownPeople, Starter {
  definitions: KnownPeople['definitions'] & Starter['definitions'];
  runs: Starter['runs'] & Pick<RunStore, 'pendingApprovals' | 'listRuns' | 'countRuns'>;
}

interface Typed {
  tenant: string;
  person: Person;
  args: string[];
  key: (runId: string) => string;
}

/** Handles `/countersign …`. Only the person who typed it sees the response. */
export async function handleCommand(slack: Commands, event: HttpEvent): Promise<HttpResponse> {
  const parsed = parseCommand(signedBody(event).toString('utf8'));
  const tenant = await tenantOfRequest(slack, event, parsed?.user.team);
  const { identity = '', team = '' } = parsed?.user ?? {};
  const person = await findSlackPerson(slack, tenant, identity);
  if (!person) return json(200, ephemeral(sentence(unknownUser(identity))));
  const triggerId = parsed?.requestId;
  const key = (runId: string) => deliveryKey.slackCommand({ team, triggerId: triggerId ?? runId });
  return json(200, ephemeral(await responseTo(slack, { tenant, person, args: parsed?.args ?? [], key })));
}

async function responseTo(slack: Commands, typed: Typed): Promise<Message> {
  const { tenant, args } = typed;
  switch (args[0]) {
    case 'pending':
      return pendingList({ runs: slack.runs, people: await slack.definitions.people(tenant) }, tenant);
    case 'list':
      return recentRuns(slack, tenant);
    case 'status':
      return countsMessage(slack, tenant);
    case 'run':
      return startRun(slack, typed);
    default:
      return sentence(HELP);
  }
}

async function startRun(slack: Commands, { tenant, person, args, key }: Typed): Promise<Message> {
  const [, name, ...words] = args;
  if (name === undefined) return sentence('Name an automation: "/countersign run AUTOMATION [TITLE]".');
  if (!may(person.role, 'runs:start')) return sentence('Only operators, admins and owners may start runs.');
  const given = words.length > 0 ? { title: words.join(' ') } : {};
  try {
    const automation = await startableAutomation(slack, tenant, name);
    const { run, isNew } = await startAutomation(slack, {
      ...{ tenant, automation, key, request: { actor: person.id } },
      trigger: requestedTrigger('manual', { person: person.id, automation: name }, given),
      requestHash: hashOf({ name, given, person: person.id }),
    });
    return sentence(`${isNew ? 'Started' : 'Already started'}: countersign runs show ${run.runId}`);
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    return sentence(`Nothing was started: ${error.message}`);
  }
}
