import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type * as z from 'zod';
import type { NamedKey } from '../../lambdas/api/authorizer/api-keys.ts';
import { DynamoApiKeys } from '../../lambdas/api/authorizer/dynamo-api-keys.ts';
import { systemClock, systemIds } from '../../lambdas/entry/system.ts';
import { Person } from '../../lambdas/people/people.ts';
import { type ChangeAuthor, changeAuthor } from '../../lambdas/pipeline/definition-changes.ts';
import type { Automation, Definitions } from '../../lambdas/pipeline/definitions.ts';
import { DynamoDefinitions } from '../../lambdas/pipeline/dynamo-definitions.ts';
import { canonicalJson } from '../../lambdas/run/canonical-json.ts';
import { parseWorkflow } from '../../lambdas/workflow/parse-workflow.ts';
import type { Workflow } from '../../lambdas/workflow/workflow.ts';
import { REGION } from '../aws/aws.ts';
import { ENGINE_ACCESS_KEY_ID } from '../dynamodb/tables.ts';
import { READ_ONLY_CREDENTIAL_PREFIX } from '../simulators/credentials.ts';
import { seededSysId } from '../simulators/servicenow/seed.ts';
import { TEAM, TEAMS } from '../simulators/slack/workspace.ts';

const WORKFLOWS = join(import.meta.dirname, '..', '..', 'workflows');

/** Fixed and documented: they are only for the simulators on this machine. */
export const LOCAL_SLACK_SIGNING_SECRET = 'local-slack-signing-secret';
const GLOBEX_SLACK_SIGNING_SECRET = 'local-globex-slack-signing-secret';
/** The tenant initech is not seeded: `countersign tenant add local/initech.tenant.yaml` sets it up. */
const INITECH_SLACK_SIGNING_SECRET = 'local-initech-slack-signing-secret';

/** The Slack team of each tenant. It identifies the tenant of a callback. */
const SLACK_TEAMS: Record<string, string> = Object.fromEntries(TEAMS.map(({ domain, id }) => [domain, id]));

/** By team id. */
export const LOCAL_SLACK_SIGNING_SECRETS: Readonly<Record<string, string>> = {
  [SLACK_TEAMS.acme ?? '']: LOCAL_SLACK_SIGNING_SECRET,
  [SLACK_TEAMS.globex ?? '']: GLOBEX_SLACK_SIGNING_SECRET,
  [SLACK_TEAMS.initech ?? '']: INITECH_SLACK_SIGNING_SECRET,
};

const WEBHOOK_SECRETS: Record<string, object> = {
  acme: {
    github: ['local-github-secret'],
    servicenow: ['local-servicenow-secret'],
    'generic/alerts': ['local-generic-alerts-secret'],
    slack: [LOCAL_SLACK_SIGNING_SECRET],
  },
  globex: {
    github: ['local-globex-github-secret'],
    servicenow: ['local-globex-servicenow-secret'],
    slack: [GLOBEX_SLACK_SIGNING_SECRET],
  },
};

const CONNECTION_CREDENTIALS = {
  servicenow: { username: 'countersign', password: 'local-servicenow-password' },
  github: { token: 'local-github-token' },
  http: { hosts: {} },
  sessions: { token: 'local-sessions-token' },
};

/** The end of a token names its workspace. */
const messagingCredentials = (tenant: string) => ({
  slack: { botToken: tenant === 'acme' ? 'xoxb-local' : `xoxb-local-${tenant}` },
  pagerduty: { routingKey: 'local'.padEnd(32, '0') },
});

/** The credentials of plans. Every simulator allows reads with them and refuses writes. */
const planCredentials = (tenant: string) => ({
  servicenow: { username: 'countersign', password: `${READ_ONLY_CREDENTIAL_PREFIX}servicenow` },
  github: { token: `${READ_ONLY_CREDENTIAL_PREFIX}github` },
  slack: { botToken: `${READ_ONLY_CREDENTIAL_PREFIX}slack-${tenant}` },
  pagerduty: { routingKey: 'read-only'.padEnd(32, '0') },
  http: { hosts: {} },
  sessions: { token: `${READ_ONLY_CREDENTIAL_PREFIX}sessions` },
});

const API_KEYS: Record<string, Omit<NamedKey, 'name'>> = {
  'local-owner-key': { tenant: 'acme', person: 'olivia', role: 'owner' },
  'local-operator-key': { tenant: 'acme', person: 'oscar', role: 'operator' },
  'local-approver-key': { tenant: 'acme', person: 'ana', role: 'approver' },
  'local-approver2-key': { tenant: 'acme', person: 'ben', role: 'approver' },
  'local-member-key': { tenant: 'acme', person: 'chloe', role: 'member' },
  'local-auditor-key': { tenant: 'acme', person: 'ada', role: 'auditor' },
  'local-globex-owner-key': { tenant: 'globex', person: 'greta', role: 'owner' },
};

/** The people of the keys, with their identities in Slack, GitHub and ServiceNow. */
const PEOPLE: Record<string, z.input<typeof Person>[]> = {
  acme: [
    { id: 'olivia', name: 'Olivia Owner', role: 'owner', identities: ['github:olivia'] },
    { id: 'oscar', name: 'Oscar Operator', role: 'operator', identities: [`slack:${TEAM.id}/U600OSCAR`] },
    {
      id: 'ana',
      name: 'Ana Ortiz',
      role: 'approver',
      tier: 'high',
      groups: ['network', 'database'],
      identities: [
        `slack:${TEAM.id}/U100ANA`,
        'github:ana-ortiz',
        'servicenow:ana',
        `servicenow:${seededSysId('ana')}`,
      ],
    },
    {
      id: 'ben',
      name: 'Ben Okafor',
      role: 'approver',
      tier: 'high',
      groups: ['platform'],
      identities: [
        `slack:${TEAM.id}/U200BEN`,
        'github:ben-okafor',
        'servicenow:ben',
        `servicenow:${seededSysId('ben')}`,
      ],
    },
    {
      id: 'chloe',
      name: 'Chloe Martin',
      role: 'member',
      identities: [
        `slack:${TEAM.id}/U300CHLOE`,
        'github:chloe',
        'servicenow:chloe',
        `servicenow:${seededSysId('chloe')}`,
      ],
    },
    { id: 'ada', name: 'Ada Auditor', role: 'auditor' },
  ],
  globex: [{ id: 'greta', name: 'Greta Globex', role: 'owner', identities: [`slack:${SLACK_TEAMS.globex}/U400GRETA`] }],
};

const emailOf = (tenant: string, id: string): string => `${id}@${tenant}.example`;

/** Whom the local OIDC issuer signs in, by client. The audience in cdk.json is the client. */
export const LOCAL_SIGN_IN = Object.fromEntries(
  Object.entries(PEOPLE).map(([tenant, people]) => [
    `countersign-${tenant}`,
    people.map(({ id, name, role }) => ({ subject: id, name, role, email: emailOf(tenant, id) })),
  ]),
);

const AUTOMATIONS: Omit<Automation, 'workflow'>[] = [
  {
    name: 'label-new-issue',
    description: 'Labels new GitHub issues for triage',
    enabled: true,
    workspace: 'default',
    trigger: { source: 'github', event: 'issues.opened' },
  },
  {
    name: 'reopened-bug',
    description: 'Labels reopened bugs as regressions',
    enabled: true,
    workspace: 'default',
    trigger: { source: 'github', event: 'issues.reopened', filter: '{% "bug" in trigger.payload.issue.labels.name %}' },
  },
  {
    name: 'triage-incident',
    description: 'Routes incidents of priority 1 and 2',
    enabled: true,
    workspace: 'default',
    trigger: { source: 'servicenow', event: 'incident.insert', filter: '{% trigger.priority in ["1", "2"] %}' },
  },
  {
    name: 'triage-issue',
    description: 'An AI agent triages GitHub issues with the label needs-triage',
    enabled: true,
    workspace: 'default',
    trigger: { source: 'github', event: 'issues.labeled', filter: '{% trigger.payload.label.name = "needs-triage" %}' },
  },
  {
    name: 'restart-demo-app',
    description: 'Restarts the demo app of the README, through an agent',
    enabled: true,
    workspace: 'default',
    trigger: { source: 'manual' },
    inputs: { script: join(import.meta.dirname, '..', 'demo-app', 'control.sh') },
  },
];

/** The simulated AI agent. Its sessions use the connection `sessions`. */
const CONFIGURATION = {
  name: 'triage-agent',
  description: 'The simulated AI agent of this machine',
  routing: 'Triages GitHub issues: proposes a label and an assignee.',
  instructions: 'Propose only what the issue supports. People and policy decide.',
};

/** The author of the seeded records in the history of changes. */
const bySetup = (): ChangeAuthor => changeAuthor({ clock: systemClock, ids: systemIds }, 'setup');

/** The first value of a secret on this machine. Undefined if it is generated, as in AWS. */
export function localSecretValue(secretName: string): string | undefined {
  const [, , tenant = '', purpose] = secretName.split('/');
  if (!Object.hasOwn(WEBHOOK_SECRETS, tenant)) return undefined;
  if (purpose === 'webhook-signing') return JSON.stringify(WEBHOOK_SECRETS[tenant]);
  if (purpose === 'connections') return JSON.stringify(CONNECTION_CREDENTIALS);
  if (purpose === 'messaging') return JSON.stringify(messagingCredentials(tenant));
  if (purpose === 'plan-connections') return JSON.stringify(planCredentials(tenant));
  return undefined;
}

/** Creates the tenants, people, connections and example automations of the local stage. */
export async function seed(dynamodbUrl: string, table: string, hostUrl: string): Promise<void> {
  const credentials = { accessKeyId: ENGINE_ACCESS_KEY_ID, secretAccessKey: 'local' };
  const client = new DynamoDBClient({ endpoint: dynamodbUrl, region: REGION, credentials });
  const definitions = new DynamoDefinitions(client, table);
  const keys = new DynamoApiKeys(client, table);
  await Promise.all([
    ...Object.entries(API_KEYS).map(([apiKey, key]) => seedKey(keys, apiKey, key)),
    ...Object.keys(WEBHOOK_SECRETS).map((tenant) => seedTenant(definitions, tenant, hostUrl)),
  ]);
  client.destroy();
}

/** `local-owner-key` has the name `local-owner`. */
async function seedKey(keys: DynamoApiKeys, apiKey: string, key: Omit<NamedKey, 'name'>): Promise<void> {
  if (await keys.find(apiKey)) return;
  const by = bySetup();
  await keys.save(apiKey, { ...key, name: apiKey.replace(/-key$/, ''), createdBy: by.actor, createdAt: by.at }, by);
}

/** A later start changes only the connections, because the host may have another URL. */
export async function seedTenant(definitions: Definitions, tenant: string, hostUrl: string): Promise<void> {
  for (const name of ['servicenow', 'github', 'slack', 'pagerduty', 'sessions']) {
    const instance = name === 'slack' ? (SLACK_TEAMS[tenant] ?? tenant) : tenant;
    const allowed = name === 'servicenow' ? { allowedTables: ['problem'] } : {};
    const connection = { name, baseUrl: `${hostUrl}/_sim/${name}`, instance, ...allowed };
    await definitions.saveConnection(tenant, connection, bySetup());
  }
  const allowedHosts = [new URL(hostUrl).host];
  await definitions.saveConnection(
    tenant,
    { name: 'http', baseUrl: hostUrl, instance: tenant, allowedHosts },
    bySetup(),
  );
  await seedConfiguration(definitions, tenant, hostUrl);
  const people = new Set((await definitions.people(tenant)).map(({ id }) => id));
  for (const person of PEOPLE[tenant] ?? []) {
    if (people.has(person.id) || (await definitions.wasDeleted(tenant, person.id))) continue;
    const identities = [...(person.identities ?? []), `email:${emailOf(tenant, person.id)}`];
    await definitions.savePerson(tenant, Person.parse({ ...person, identities }), bySetup());
  }
  const automations = new Set((await definitions.automations(tenant)).map(({ name }) => name));
  for (const automation of AUTOMATIONS) {
    if (automations.has(automation.name)) continue;
    const file = `${automation.name}.yaml`;
    const source = readFileSync(join(WORKFLOWS, file), 'utf8');
    const workflow = parseWorkflow(source, `workflows/${file}`);
    const version = await publish(definitions, tenant, workflow, source);
    await definitions.saveAutomation(tenant, { ...automation, workflow: { name: workflow.name, version } }, bySetup());
  }
}

/** A later start changes only its URL. A configuration that somebody moved elsewhere stays. */
async function seedConfiguration(definitions: Definitions, tenant: string, hostUrl: string): Promise<void> {
  const session = { provider: 'a2a' as const, url: `${hostUrl}/_sim/sessions`, connection: 'sessions' };
  const stored = await definitions.configuration(tenant, CONFIGURATION.name);
  if (stored && (stored.session.provider !== 'a2a' || stored.session.connection !== session.connection)) return;
  if (stored?.session.provider === 'a2a' && stored.session.url === session.url) return;
  const next = { ...(stored ?? CONFIGURATION), session, revision: (stored?.revision ?? 0) + 1 };
  await definitions.saveConfiguration(tenant, next, bySetup(), { ...(stored && { replaces: stored }) });
}

/** Returns the published version with the same content, or publishes a new version. */
async function publish(definitions: Definitions, tenant: string, workflow: Workflow, source: string): Promise<number> {
  const wanted = canonicalJson(workflow);
  for (let version = 1; ; version += 1) {
    const published = await definitions.workflow(tenant, workflow.name, version);
    const { source: _source, ...definition } = published ?? {};
    if (published && canonicalJson(definition) === wanted) return version;
    if (published) continue;
    await definitions.publishWorkflow(tenant, { ...workflow, source }, version, bySetup());
    return version;
  }
}
