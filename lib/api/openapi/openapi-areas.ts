interface Area {
  name: string;
  description: string;
}

/** The areas of the API by the first part of the path, in the order in which its documentation shows them. */
export const AREAS: Readonly<Record<string, Area>> = {
  runs: { name: 'Runs', description: 'Runs of workflows: what they did, and what operators can do' },
  actions: { name: 'Actions', description: 'Single calls that sessions, people and programs propose' },
  mcp: { name: 'MCP', description: 'The governed tools, for MCP clients' },
  executions: { name: 'Executions', description: 'Runs, with the field names of earlier clients' },
  approvals: { name: 'Approvals', description: 'Writes that need a decision of people' },
  evidence: { name: 'Evidence', description: 'Signed records of ended runs, which anyone can verify offline' },
  plans: { name: 'Plans', description: 'What a run would write; a plan can be applied' },
  workflows: { name: 'Workflows', description: 'Versions of workflows' },
  automations: { name: 'Automations', description: 'Which event starts which workflow' },
  schedules: { name: 'Schedules', description: 'Times at which runs start' },
  tools: { name: 'Tools', description: 'What the steps of a workflow can do' },
  policies: { name: 'Policies', description: 'What is allowed, denied or needs an approval' },
  people: { name: 'People', description: 'People, their roles and what they may approve' },
  me: { name: 'Caller', description: 'Who the caller is, and what they may do' },
  'sign-in': { name: 'Sign-in', description: 'The issuers that sign people in' },
  live: { name: 'Live feed', description: 'Events over a WebSocket; docs/live-feed.md describes its messages' },
  'api-keys': { name: 'API keys', description: 'Credentials of people and machines' },
  connections: { name: 'Connections', description: 'Addresses and credentials of targets' },
  configurations: { name: 'Configurations', description: 'Where sessions run, and how to reach them' },
  sources: { name: 'Sources', description: 'Definitions of generic webhooks' },
  'webhook-secrets': { name: 'Webhook secrets', description: 'Secrets with which other systems sign their events' },
  settings: { name: 'Settings', description: 'Limits and flags of the tenant' },
  subscriptions: { name: 'Subscriptions', description: 'Who is notified of what' },
  changes: { name: 'Changes', description: 'The history of all definitions' },
  status: { name: 'Status', description: 'What is wrong, since when, and what to do' },
  doctor: { name: 'Doctor', description: 'What is missing in the setup of a tenant' },
  'dead-letters': { name: 'Dead letters', description: 'Messages that could not be processed' },
  outbox: { name: 'Outbox', description: 'Effects outside a run that were not completed' },
  agents: { name: 'Agents', description: 'Programs that run commands near other systems' },
  'enrolment-tokens': { name: 'Enrolment tokens', description: 'With which agents enrol' },
  profiles: { name: 'Profiles', description: 'Which commands may run' },
  agent: { name: 'Agent API', description: 'Signed requests of agents' },
  webhooks: { name: 'Webhooks', description: 'Signed events from other systems' },
  slack: { name: 'Slack', description: 'Signed callbacks from Slack' },
  stage: { name: 'Stage', description: 'The stage itself: health, public keys and this documentation' },
};

/** A signed route about one run is one of its sessions. */
export const isOfSession = (path: string): boolean => path.startsWith('/api/v1/runs/');

/** `/api/v1/dead-letters/redrive` is in the area `dead-letters`. Undefined: give the new area a line above. */
export function areaOf(path: string): string | undefined {
  if (/\/(evidence|texts)(\/|$)/.test(path)) return 'evidence';
  const [, inApi, outside] = /^\/(?:api\/v1\/([^/]+)|([^/]+))/.exec(path) ?? [];
  if (inApi !== undefined) return inApi in AREAS ? inApi : undefined;
  return outside !== undefined && outside in AREAS ? outside : 'stage';
}
