import type { RequestFor, ResponseFrom } from '../../../client/api-client.ts';
import { Page } from '../../terminal/page.ts';
import { type Column, table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { noteMore, pagingOptions, readPages } from '../paging.ts';
import { readDefinition } from '../read-file.ts';

type Automation = ResponseFrom<'GET /api/v1/automations/{name}'>;
type AutomationFields = NonNullable<RequestFor<'PUT /api/v1/automations/{name}'>['body']>;

const COLUMNS: readonly Column[] = [
  { title: 'AUTOMATION' },
  { title: 'EVENT', shrink: 'wrap' },
  { title: 'WORKFLOW', shrink: 'wrap' },
  { title: 'FILTER', shrink: 'wrap' },
];

export const automations: readonly Command[] = [
  {
    name: 'automations list',
    args: [],
    description: 'list automations: which event starts which workflow or session',
    options: pagingOptions('automations'),
    async run(call) {
      const api = call.api();
      const { items, nextCursor } = await readPages(call, async (query) => {
        const page = await api.call('GET /api/v1/automations', { query });
        return { items: page.automations, nextCursor: page.nextCursor };
      });
      if (call.json) call.printJson({ automations: items, nextCursor });
      else printAutomations(call, printable(items), nextCursor);
      return EXIT.ok;
    },
  },
  {
    name: 'automations show',
    args: ['NAME'],
    description: 'show an automation',
    options: {},
    async run(call) {
      const automation = await call.api().call('GET /api/v1/automations/{name}', { params: { name: call.arg(0) } });
      if (call.json) call.printJson(automation);
      else printAutomation(call, automation);
      return EXIT.ok;
    },
  },
  {
    name: 'automations put',
    args: ['FILE'],
    description: 'create or change an automation from a YAML or JSON file',
    details:
      'name: close-duplicates\n' +
      'triggers:                             # one or more; { source: manual }: no event starts it\n' +
      '  - source: github                    # or servicenow, or generic with a source of your own\n' +
      '    event: issues.labeled             # or issues: any action; ServiceNow: incident.insert, …\n' +
      '    filter: "{% trigger.payload.label.name = \'duplicate\' %}"   # optional: start a run only if this is true\n' +
      'workflow: { name: close-duplicates, version: 1 }              # printed by workflow publish\n' +
      '# Or, instead of workflow, a session of an AI agent that configuration names:\n' +
      '# instructions: Find the original of this issue, and close the issue as a duplicate.\n' +
      '# session: { actions: [{ tool: github.issue.close, with: { owner: acme, repo: shop } }], maxActions: 1 }\n' +
      'notifications:                        # optional, like all that follows: who is notified when a run ends\n' +
      '  - { type: slack_channel, channel: C0OPS }\n' +
      '  - { type: slack_dm_user, person: ana }\n' +
      'connections: [github]                 # the only connections that its runs may use\n' +
      'caps: { maxConcurrency: 2, maxRunsPerMinute: 10, maxWritesPerRun: 5 }\n' +
      'configuration: { strategy: fixed, default: triage-agent }     # for sessions; or agent_decide with allow\n' +
      'enabled: true                         # like description and workspace',
    options: {},
    async run(call) {
      const { id: name, fields } = await readDefinition<AutomationFields>(call.arg(0), 'name', 'an automation');
      const params = { name };
      const saved = await call.api().call('PUT /api/v1/automations/{name}', { params, body: { name, ...fields } });
      if (call.json) call.printJson(saved);
      else {
        const effect = saved.enabled ? `${eventOf(saved)} starts ${workflowOf(saved)}` : 'it is disabled';
        call.terminal.print(printable(`saved ${saved.name}; within ${saved.effectiveWithinSeconds} s, ${effect}`));
      }
      return EXIT.ok;
    },
  },
  {
    name: 'automations delete',
    args: ['NAME'],
    description: 'delete an automation that no schedule uses',
    options: {},
    async run(call) {
      const deleted = await call.api().call('DELETE /api/v1/automations/{name}', { params: { name: call.arg(0) } });
      if (call.json) call.printJson(deleted);
      else call.terminal.print(printable(`deleted ${deleted.deleted}; its runs stay`));
      return EXIT.ok;
    },
  },
  ...(['enable', 'disable'] as const).map(
    (command): Command => ({
      name: `automations ${command}`,
      args: ['NAME'],
      description: command === 'enable' ? 'let an automation start runs' : 'stop an automation from starting runs',
      options: {},
      async run(call) {
        const params = { name: call.arg(0) };
        const saved = await call.api().call(`POST /api/v1/automations/{name}/${command}`, { params });
        if (call.json) call.printJson(saved);
        else {
          const { name, effectiveWithinSeconds: seconds } = printable(saved);
          call.terminal.print(`${name} is ${command}d, within ${seconds} s everywhere`);
        }
        return EXIT.ok;
      },
    }),
  ),
];

function printAutomations(call: Call, items: readonly Automation[], nextCursor: string | null): void {
  const { terminal } = call;
  const rows = items.map((automation) => [
    automation.name,
    eventOf(automation),
    workflowOf(automation),
    automation.enabled ? filterOf(automation) : 'disabled',
  ]);
  if (items.length === 0) terminal.note('no automations; create one with npx countersign automations put FILE');
  else for (const line of table(COLUMNS, rows, terminal)) terminal.print(line);
  noteMore(call, nextCursor);
}

function printAutomation({ terminal }: Call, read: Automation): void {
  const page = new Page(terminal);
  const { instructions, ...automation } = printable({ ...read, instructions: linesOf(read.instructions) });
  page.title(automation.name, automation.enabled ? { text: 'enabled', tone: 'good' } : { text: 'disabled' });
  if (automation.description !== undefined) page.line(automation.description);
  page.blank();
  for (const trigger of automation.triggers) {
    page.field('event', eventText(trigger));
    page.field('filter', filterText(trigger));
  }
  page.field('workflow', workflowOf(read));
  const tools = (automation.session?.actions ?? []).map(({ tool }) => tool);
  if (tools.length > 0) page.field('may propose', [...new Set(tools)].join(', '));
  page.field('workspace', automation.workspace);
  const { notifications, connections, caps, configuration, model } = automation;
  const notified = notifications.map((each) => ('channel' in each ? each.channel : each.person));
  page.field('notified', notified.join(', ') || 'nobody');
  page.field('connections', connections ? connections.join(', ') || 'none' : 'all');
  if (caps)
    page.field(
      'caps',
      Object.entries(caps)
        .map(([cap, limit]) => `${cap} ${limit}`)
        .join(', '),
    );
  if (configuration) page.field('sessions', sessionsOf(configuration));
  if (model !== undefined) page.field('model', model);
  if (instructions.length > 0) page.heading('Instructions');
  for (const line of instructions) page.line(line);
}

const linesOf = (text: string | undefined): string[] => text?.trimEnd().split('\n') ?? [];

function sessionsOf(configuration: NonNullable<Automation['configuration']>): string {
  if (configuration.strategy === 'fixed') return configuration.default;
  const { allow, fallback, default: preset } = configuration;
  const otherwise = fallback ?? preset;
  return `a model picks from ${allow.join(', ')}${otherwise === undefined ? '' : `, otherwise ${otherwise}`}`;
}

type Trigger = Automation['triggers'][number];
const eventText = (trigger: Trigger) =>
  trigger.source === 'manual' ? 'a manual start' : `${trigger.source} ${trigger.event}`;
const filterText = (trigger: Trigger) => (trigger.source === 'manual' ? '-' : (trigger.filter ?? '-'));
const eventOf = ({ triggers }: Automation) => triggers.map(eventText).join(', ');
const filterOf = ({ triggers }: Automation) => triggers.map(filterText).join(', ');
const workflowOf = ({ workflow, instructions }: Automation) =>
  printable(`${instructions === undefined ? '' : 'a session, '}${workflow.name} v${workflow.version}`);
