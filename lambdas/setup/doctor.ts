import { approverWarnings } from '../approval/texts/approver-warnings.ts';
import { kindOf } from '../connectors/credential-form.ts';
import { genericSource } from '../intake/signing-secrets.ts';
import type { Person } from '../people/people.ts';
import { may } from '../people/rights.ts';
import { triggersOf } from '../pipeline/automation.ts';
import type { Automation, Connection } from '../pipeline/definitions.ts';
import type { GenericSource } from '../pipeline/generic-source.ts';
import type { TenantSettings } from '../run/settings/caps.ts';
import type { PublishedWorkflow } from '../workflow/workflow.ts';
import type { DescribedCredentials } from './credentials.ts';
import { connectionsUsedBy, toolsOf } from './used-connections.ts';

export interface Finding {
  /** `error`: something does not work. `warning`: it works in part, or will stop working. */
  level: 'error' | 'warning';
  subject: string;
  problem: string;
  /** The command that fixes it. */
  fix: string;
}

/** A key that expires sooner than this is reported. */
const KEY_EXPIRES_SOON_MS = 14 * 24 * 60 * 60 * 1000;

/** Everything that a tenant has defined. */
export interface TenantState {
  tenant: string;
  kind: 'prod' | 'staging' | 'dev';
  /** Whether somebody gets the alarms of the stage. */
  hasAlarmReceiver: boolean;
  now: string;
  people: readonly Person[];
  connections: readonly Connection[];
  credentials: DescribedCredentials;
  settings: TenantSettings;
  automations: readonly {
    automation: Automation;
    workflow: PublishedWorkflow | undefined;
    newest: number | undefined;
  }[];
  /** The webhook sources of the tenant's own. */
  sources: readonly Pick<GenericSource, 'name' | 'enabled'>[];
  keys: readonly { name: string; person: string; machine?: boolean; expiresAt?: string }[];
  /** Changes that wait for a second owner. */
  pendingChanges: number;
}

/** What is missing or wrong in a tenant. Errors come first. */
export function examine(state: TenantState): Finding[] {
  const found = [
    ...peopleFindings(state),
    ...connectionFindings(state),
    ...webhookFindings(state),
    ...automationFindings(state),
    ...approvalFindings(state),
    ...keyFindings(state),
    ...stageFindings(state),
  ];
  return [...found.filter(({ level }) => level === 'error'), ...found.filter(({ level }) => level === 'warning')];
}

const error = (subject: string, problem: string, fix: string): Finding => ({ level: 'error', subject, problem, fix });
const warning = (subject: string, problem: string, fix: string): Finding => ({
  ...error(subject, problem, fix),
  level: 'warning',
});

const ADD_CONNECTION = 'countersign connections add FILE (connections add --help shows the fields of FILE)';
const PUT_PERSON = 'countersign people put FILE (docs/administration.md, "People", has an example of FILE)';
const PUT_AUTOMATION = 'countersign automations put FILE (docs/workflows.md has an example of FILE)';

function peopleFindings({ people, kind, tenant, connections, pendingChanges }: TenantState): Finding[] {
  const owners = people.filter(({ role }) => role === 'owner');
  const hasSlack = connections.some(({ name }) => name === 'slack');
  const decides = ({ role }: Person) => may(role, 'approvals:decide');
  return [
    ...(kind === 'prod' && owners.length < 2
      ? [
          error(
            'people',
            `the tenant has ${owners.length === 1 ? 'one owner' : 'no owner'}, and in prod a second owner must confirm who may approve`,
            `countersign tenant owner ID --name NAME --stage STAGE --tenant ${tenant}`,
          ),
        ]
      : []),
    ...(pendingChanges > 0
      ? [warning('changes', `${pendingChanges} wait for a second owner`, 'countersign changes pending')]
      : []),
    ...people
      .filter(({ identities }) => identities.length === 0)
      .map(({ id }) =>
        warning(`person ${id}`, 'has no identities, so nobody knows which events and clicks are theirs', PUT_PERSON),
      ),
    ...people
      .filter((person) => hasSlack && decides(person) && person.identities.length > 0)
      .filter(({ identities }) => !identities.some((identity) => identity.startsWith('slack:')))
      .map(({ id }) =>
        warning(`person ${id}`, 'may approve, but has no Slack identity to decide on cards', PUT_PERSON),
      ),
  ];
}

function connectionFindings({ connections, credentials, automations, settings }: TenantState): Finding[] {
  const used = new Map<string, string[]>();
  const tools = new Map<string, string>();
  for (const { automation, workflow } of automations) {
    if (!automation.enabled || !workflow) continue;
    for (const name of connectionsUsedBy(workflow)) used.set(name, [...(used.get(name) ?? []), automation.name]);
    for (const tool of workflow.steps.flatMap(toolsOf)) tools.set(tool, automation.name);
  }
  const absent = [...used].filter(([name]) => !connections.some((each) => each.name === name));
  return [
    ...credentials.unreadable.map((purpose) =>
      error(`secret ${purpose}`, 'is not a JSON object, so nothing in it is used', ADD_CONNECTION),
    ),
    ...absent.map(([name, users]) =>
      error(`connection ${name}`, `does not exist, and ${usedBy(users)}`, ADD_CONNECTION),
    ),
    ...connections.flatMap(({ name }) => credentialFindings(name, credentials, used.get(name))),
    ...connections.flatMap((connection) => allowListFindings(connection, tools)),
    ...(connections.some(({ name }) => name === 'slack')
      ? settings.approvalsChannel === undefined
        ? [
            warning(
              'settings',
              'no channel for approvals is set, so their cards go to #approvals',
              'countersign settings set approvalsChannel=#approvals',
            ),
          ]
        : []
      : [
          warning(
            'connection slack',
            'does not exist: approvals are shown only by countersign approvals list',
            ADD_CONNECTION,
          ),
        ]),
  ];
}

const usedBy = (automations: readonly string[]): string =>
  `${automations.join(', ')} ${automations.length === 1 ? 'uses' : 'use'} it`;

function credentialFindings(
  name: string,
  { connections, unreadable }: DescribedCredentials,
  users: readonly string[] = [],
): Finding[] {
  const missing = { state: 'missing' as const };
  const { credential = missing, planCredential = missing } = connections.find((each) => each.connection === name) ?? {};
  const subject = `connection ${name}`;
  const described: Finding[] = [];
  if (credential.state === 'missing') {
    const effect = users.length === 0 ? '' : `, and ${usedBy(users)}`;
    described.push(error(subject, `has no credential${effect}`, ADD_CONNECTION));
  }
  // A plan starts no session.
  if (planCredential.state === 'missing' && kindOf(name) !== 'a2a') {
    described.push(warning(subject, 'has no credential for plans, which cannot read this system', ADD_CONNECTION));
  }
  for (const state of unreadable.length > 0 ? [] : [credential, planCredential]) {
    if (state.state === 'malformed') described.push(error(subject, state.problem ?? 'is malformed', ADD_CONNECTION));
  }
  return described;
}

/** These tools reach only what their connection allows, and by default that is nothing. */
function allowListFindings(
  { name, allowedHosts, allowedTables }: Connection,
  tools: ReadonlyMap<string, string>,
): Finding[] {
  const userOf = (prefix: string) => [...tools].find(([tool]) => tool.startsWith(prefix))?.[1];
  const missing = (list: readonly string[] | undefined, field: string, user: string | undefined) =>
    user === undefined || (list ?? []).length > 0
      ? []
      : [error(`connection ${name}`, `has no ${field}, so the calls of ${user} are refused`, ADD_CONNECTION)];
  if (name === 'http') return missing(allowedHosts, 'allowedHosts', userOf('http.'));
  return name === 'servicenow' ? missing(allowedTables, 'allowedTables', userOf('servicenow.record.')) : [];
}

function webhookFindings({ credentials, automations, connections, sources }: TenantState): Finding[] {
  const senders = new Set<string>(
    automations
      .filter(({ automation }) => automation.enabled)
      .flatMap(({ automation }) => triggersOf(automation).map(({ source }) => source)),
  );
  const signs = (source: string) =>
    senders.has(source) || (source === 'slack' && connections.some(({ name }) => name === 'slack'));
  const own = sources.filter(({ enabled }) => enabled).map(({ name }) => genericSource(name));
  const unsigned = own
    .filter((source) => !credentials.signing.some((each) => each.source === source))
    .map((source) =>
      error(
        `webhook secret ${source}`,
        'does not exist: every webhook is refused',
        `countersign webhook set-secret ${source}`,
      ),
    );
  const ofSecrets = credentials.signing.flatMap(({ source, usable, generated, problems }) => {
    const fix = `countersign webhook set-secret ${source}`;
    const subject = `webhook secret ${source}`;
    const refused = source === 'slack' ? 'every click on a card is refused' : 'every webhook is refused';
    return [
      ...problems.map((problem) => error(subject, problem, fix)),
      ...(usable === 0 && problems.length === 0 && signs(source)
        ? [error(subject, `does not exist: ${refused}`, fix)]
        : []),
      ...(generated && signs(source)
        ? [warning(subject, 'was generated by the deploy, and no sender has it', fix)]
        : []),
      ...(usable > 1
        ? [warning(subject, 'has two values: a rotation has not ended', `countersign webhook end-rotation ${source}`)]
        : []),
    ];
  });
  return [...unsigned, ...ofSecrets];
}

function automationFindings({ automations }: TenantState): Finding[] {
  if (automations.length === 0) {
    return [warning('automations', 'there are none, so no event starts a run', PUT_AUTOMATION)];
  }
  return automations.flatMap(({ automation: { name, enabled, workflow: wanted }, workflow, newest }) => {
    const subject = `automation ${name}`;
    if (!workflow) {
      const published = newest === undefined ? 'no version is published' : `the newest version is ${newest}`;
      const fix = newest === undefined ? 'countersign workflow publish FILE' : PUT_AUTOMATION;
      return [error(subject, `starts ${wanted.name} v${wanted.version}, which does not exist; ${published}`, fix)];
    }
    return enabled ? [] : [warning(subject, 'is disabled', `countersign automations enable ${name}`)];
  });
}

function approvalFindings({ automations, people, now }: TenantState): Finding[] {
  return automations.flatMap(({ automation, workflow }) => {
    if (!automation.enabled || !workflow) return [];
    const missing = approverWarnings(workflow, workflow.author ?? '', people, now);
    return missing.map((problem) => error(`workflow ${workflow.name}`, problem, PUT_PERSON));
  });
}

function keyFindings({ keys, people, now }: TenantState): Finding[] {
  return keys.flatMap(({ name, person, machine, expiresAt }) => {
    if (!machine && !people.some(({ id }) => id === person)) {
      const problem = `${person} is neither a person of the tenant nor marked as a program, so it is refused`;
      const fix = `countersign keys create NAME --machine --role ROLE, use that key, then: countersign keys revoke ${name}`;
      return [error(`API key ${name}`, problem, fix)];
    }
    if (expiresAt === undefined) return [];
    const leftMs = Date.parse(expiresAt) - Date.parse(now);
    if (leftMs > KEY_EXPIRES_SOON_MS) return [];
    const when = leftMs <= 0 ? `expired at ${expiresAt}` : `expires at ${expiresAt}`;
    return [warning(`API key ${name} of ${person}`, when, 'countersign keys create')];
  });
}

function stageFindings({ hasAlarmReceiver, kind }: TenantState): Finding[] {
  if (hasAlarmReceiver || kind === 'dev') return [];
  const fix = 'set alarmEmails or alarmTopicArn of the stage in cdk.json, then: npx cdk deploy -c stage=STAGE';
  return [warning('alarms', 'nobody gets the alarms of the stage', fix)];
}
