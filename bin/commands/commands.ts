import type { Command } from './command.ts';

interface CommandModule {
  names: readonly string[];
  load(): Promise<Command | readonly Command[]>;
}

/** All commands, in the order of the help. Each loads only its own module: loading all takes longer than most commands. */
const MODULES: readonly CommandModule[] = [
  { names: ['status'], load: async () => (await import('./status.ts')).status },
  { names: ['runs list'], load: async () => (await import('./runs/list.ts')).runsList },
  { names: ['runs show'], load: async () => (await import('./runs/show.ts')).runsShow },
  { names: ['runs watch'], load: async () => (await import('./runs/watch.ts')).runsWatch },
  { names: ['runs output'], load: async () => (await import('./runs/output.ts')).runsOutput },
  { names: ['runs approve', 'runs reject'], load: async () => (await import('./approvals/decide.ts')).runsDecide },
  {
    names: ['runs start', 'automations run', 'runs rerun', 'runs replay'],
    load: async () => (await import('./runs/start.ts')).runsStart,
  },
  {
    names: [
      'runs cancel',
      'runs pause',
      'runs rollback',
      'runs assign',
      'runs release',
      'runs resolve',
      'runs accept-broken-rules',
      'runs resume',
      'runs retry',
      'runs cancel-session',
      'runs signal',
    ],
    load: async () => (await import('./runs/control.ts')).runsControl,
  },
  {
    names: ['runs subscribe', 'runs subscriptions'],
    load: async () => (await import('./runs/subscriptions.ts')).runSubscriptions,
  },
  { names: ['runs bulk'], load: async () => (await import('./runs/bulk.ts')).runsBulk },
  { names: ['approvals list'], load: async () => (await import('./approvals/list.ts')).approvalsList },
  { names: ['approvals show'], load: async () => (await import('./approvals/show.ts')).approvalsShow },
  {
    names: ['approvals approve', 'approvals reject', 'approvals edit'],
    load: async () => (await import('./approvals/decide.ts')).approvalsDecide,
  },
  { names: ['webhook send'], load: async () => (await import('./webhook/send.ts')).webhookSend },
  { names: ['webhook secrets'], load: async () => (await import('./webhook/secrets.ts')).webhookSecrets },
  { names: ['workflow init'], load: async () => (await import('./workflow/init.ts')).workflowInit },
  {
    names: ['webhook set-secret', 'webhook end-rotation'],
    load: async () => (await import('./webhook/set-secret.ts')).webhookSetSecret,
  },
  {
    names: ['connections list', 'connections show', 'connections add', 'connections test', 'connections delete'],
    load: async () => (await import('./setup/connections.ts')).connections,
  },
  { names: ['settings show', 'settings set'], load: async () => (await import('./setup/settings.ts')).settings },
  { names: ['tenant add', 'tenant owner'], load: async () => (await import('./setup/tenant-add.ts')).tenantAdd },
  { names: ['doctor'], load: async () => (await import('./setup/doctor.ts')).doctor },
  { names: ['workflow validate'], load: async () => (await import('./workflow/validate.ts')).workflowValidate },
  { names: ['workflow test'], load: async () => (await import('./workflow/test.ts')).workflowTest },
  { names: ['workflow simulate'], load: async () => (await import('./workflow/simulate.ts')).workflowSimulate },
  { names: ['plan apply'], load: async () => (await import('./workflow/plan-apply.ts')).planApply },
  { names: ['workflow publish'], load: async () => (await import('./workflow/publish.ts')).workflowPublish },
  {
    names: ['workflow list', 'workflow show', 'workflow diff'],
    load: async () => (await import('./workflow/versions.ts')).workflowVersions,
  },
  { names: ['tools'], load: async () => (await import('./workflow/tools.ts')).tools },
  { names: ['mcp'], load: async () => (await import('./mcp.ts')).mcp },
  {
    names: [
      'automations list',
      'automations show',
      'automations put',
      'automations delete',
      'automations enable',
      'automations disable',
    ],
    load: async () => (await import('./workflow/automations.ts')).automations,
  },
  {
    names: ['configurations list', 'configurations show', 'configurations save', 'configurations delete'],
    load: async () => (await import('./configurations.ts')).configurations,
  },
  {
    names: ['executions start', 'executions list', 'executions show', 'executions events', 'executions rollback'],
    load: async () => (await import('./executions/executions.ts')).executions,
  },
  {
    names: ['executions approve', 'executions reject'],
    load: async () => (await import('./executions/decide.ts')).executionsDecide,
  },
  {
    names: ['agents list', 'agents show', 'agents drain', 'agents resume', 'agents remove'],
    load: async () => (await import('./agents/agents.ts')).agents,
  },
  {
    names: ['agents token', 'agents tokens', 'agents revoke-token'],
    load: async () => (await import('./agents/tokens.ts')).agentTokens,
  },
  {
    names: ['agents profiles', 'agents set-profile'],
    load: async () => (await import('./agents/profiles.ts')).agentProfiles,
  },
  {
    names: [
      'schedules list',
      'schedules show',
      'schedules save',
      'schedules delete',
      'schedules enable',
      'schedules disable',
    ],
    load: async () => (await import('./schedules.ts')).schedules,
  },
  {
    names: ['sources list', 'sources show', 'sources save', 'sources delete'],
    load: async () => (await import('./sources.ts')).sources,
  },
  { names: ['login'], load: async () => (await import('./access/login.ts')).login },
  { names: ['logout'], load: async () => (await import('./access/login.ts')).logout },
  { names: ['whoami'], load: async () => (await import('./access/whoami.ts')).whoami },
  { names: ['profiles list', 'profiles use'], load: async () => (await import('./access/profiles.ts')).profiles },
  { names: ['keys create', 'keys list', 'keys revoke'], load: async () => (await import('./access/keys.ts')).keys },
  {
    names: ['people list', 'people show', 'people put', 'people delete', 'people confirm', 'people delegates'],
    load: async () => (await import('./people/people.ts')).people,
  },
  {
    names: [
      'changes list',
      'changes show',
      'changes export',
      'changes erase',
      'changes pending',
      'changes confirm',
      'changes reject',
    ],
    load: async () => (await import('./people/changes.ts')).changes,
  },
  { names: ['policy test'], load: async () => (await import('./policy/test.ts')).policyTest },
  { names: ['policy replay'], load: async () => (await import('./policy/replay.ts')).policyReplay },
  { names: ['policy publish'], load: async () => (await import('./policy/publish.ts')).policyPublish },
  { names: ['evidence get'], load: async () => (await import('./evidence/get.ts')).evidenceGet },
  {
    names: ['evidence verify', 'evidence show', 'evidence html', 'evidence open', 'evidence audit'],
    load: async () => (await import('./evidence/checks.ts')).evidenceChecks,
  },
  {
    names: ['agent enrol', 'agent run', 'agent doctor', 'agent drain'],
    load: async () => (await import('./agent/agent.ts')).agent,
  },
  {
    names: ['dead-letters list', 'dead-letters redrive'],
    load: async () => (await import('./dead-letters.ts')).deadLetters,
  },
  { names: ['redrive'], load: async () => (await import('./redrive.ts')).redrive },
  { names: ['outbox redrive'], load: async () => (await import('./redrive.ts')).outboxRedrive },
  { names: ['completion'], load: async () => (await import('./completion.ts')).completion },
];

export const COMMAND_NAMES: readonly string[] = MODULES.flatMap(({ names }) => names);

export const allCommands = (): Promise<Command[]> => loaded(MODULES);

/**
 * The commands to parse a command line with: those of one module if it begins with the name of a command; otherwise all, because
 * options may come first, or the help lists every command.
 */
export function commandsFor([group = '', verb = '']: readonly string[]): Promise<Command[]> {
  const named = MODULES.find(({ names }) => names.includes(group) || names.includes(`${group} ${verb}`));
  return named ? loaded([named]) : allCommands();
}

const loaded = async (modules: readonly CommandModule[]): Promise<Command[]> =>
  (await Promise.all(modules.map(({ load }) => load()))).flat();
