import type { RequestFor } from '../../../client/api-client.ts';
import type { Automation } from '../../../lambdas/pipeline/definitions.ts';
import { Page } from '../../terminal/page.ts';
import { type Column, table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { noteMore, pagingOptions, readPages } from '../paging.ts';
import { readDefinition } from '../read-file.ts';

type AutomationFields = RequestFor<'PUT /api/v1/automations/{name}'>['body'];

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
    description: 'list automations: which event starts which workflow',
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
      else printAutomation(call, printable(automation));
      return EXIT.ok;
    },
  },
  {
    name: 'automations put',
    args: ['FILE'],
    description: 'create or change an automation from a YAML or JSON file',
    details:
      'name: close-duplicates\n' +
      'trigger:\n' +
      '  source: github                      # or servicenow\n' +
      '  event: issues.labeled               # or issues: any action; ServiceNow: incident.insert, …\n' +
      '  filter: "{% trigger.payload.label.name = \'duplicate\' %}"   # optional: start a run only if this is true\n' +
      'workflow: { name: close-duplicates, version: 1 }              # printed by workflow publish\n' +
      'enabled: true                         # optional, like description and workspace',
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

function printAutomation({ terminal }: Call, automation: Automation): void {
  const page = new Page(terminal);
  page.title(automation.name, automation.enabled ? { text: 'enabled', tone: 'good' } : { text: 'disabled' });
  if (automation.description !== undefined) page.line(automation.description);
  page.blank();
  page.field('event', eventOf(automation));
  page.field('filter', filterOf(automation));
  page.field('workflow', workflowOf(automation));
  page.field('workspace', automation.workspace);
}

const eventOf = ({ trigger }: Automation) =>
  trigger.source === 'manual' ? 'a manual start' : `${trigger.source} ${trigger.event}`;
const filterOf = ({ trigger }: Automation) => (trigger.source === 'manual' ? '-' : (trigger.filter ?? '-'));
const workflowOf = ({ workflow }: Automation) => `${workflow.name} v${workflow.version}`;
