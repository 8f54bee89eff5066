import type { Automation } from '../../../lambdas/pipeline/definitions.ts';
import { Page } from '../../terminal/page.ts';
import { type Column, table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { readNamed } from '../named-file.ts';
import { noteMore, pagingOptions, readPages } from '../paging.ts';

const COLUMNS: readonly Column[] = [
  { title: 'AUTOMATION' },
  { title: 'ON', keeps: 'all' },
  { title: 'RUNS', keeps: 'all' },
  { title: 'IF', keeps: 'all' },
];

/** Which events start which workflow. */
export const automations: readonly Command[] = [
  {
    name: 'automations list',
    takes: [],
    says: 'which events start which workflow',
    options: pagingOptions('automations'),
    async run(call) {
      const api = call.api();
      const { items, nextCursor } = await readPages(call, async (asked) => {
        const page = await api.automations(asked);
        return { items: page.automations, nextCursor: page.nextCursor };
      });
      if (call.json) call.printJson({ automations: items, nextCursor });
      else printAutomations(call, printable(items), nextCursor);
      return EXIT.ok;
    },
  },
  {
    name: 'automations show',
    takes: ['NAME'],
    says: 'one automation',
    options: {},
    async run(call) {
      const automation = await call.api().automation(call.positional(0));
      if (call.json) call.printJson(automation);
      else printAutomation(call, printable(automation));
      return EXIT.ok;
    },
  },
  {
    name: 'automations put',
    takes: ['FILE'],
    says: 'make or change the automation in a YAML or JSON file',
    details:
      'name: close-duplicates\n' +
      'trigger:\n' +
      '  source: github                      # or servicenow\n' +
      '  event: issues.labeled               # issues alone means any; of ServiceNow incident.insert, .update, .delete\n' +
      '  filter: "{% trigger.payload.label.name = \'duplicate\' %}"   # optional: only a true value starts a run\n' +
      'workflow: { name: close-duplicates, version: 1 }              # as workflow publish said\n' +
      'enabled: true                         # optional, as are description and workspace',
    options: {},
    async run(call) {
      const saved = await call.api().saveAutomation(readNamed(call.positional(0), 'name', 'automation'));
      if (call.json) call.printJson(saved);
      else {
        const { name, effectiveWithinSeconds } = saved;
        const does = saved.enabled ? `${onWhat(saved)} starts ${runsWhat(saved)}` : 'it starts nothing';
        call.terminal.print(printable(`${name} is saved: within ${effectiveWithinSeconds} s ${does}`));
      }
      return EXIT.ok;
    },
  },
];

function printAutomations(call: Call, items: readonly Automation[], nextCursor: string | null): void {
  const { terminal } = call;
  const rows = items.map((automation) => [
    automation.name,
    onWhat(automation),
    runsWhat(automation),
    automation.enabled ? (automation.trigger.filter ?? '-') : 'never: not enabled',
  ]);
  if (items.length === 0) terminal.note('no automations; make one with npx countersign automations put FILE');
  else for (const line of table(COLUMNS, rows, terminal)) terminal.print(line);
  noteMore(call, nextCursor);
}

function printAutomation({ terminal }: Call, automation: Automation): void {
  const page = new Page(terminal);
  page.title(automation.name, automation.enabled ? { text: 'enabled', tone: 'good' } : 'not enabled');
  if (automation.description !== undefined) page.line(automation.description);
  page.blank();
  page.field('on', onWhat(automation));
  page.field('if', automation.trigger.filter ?? '-');
  page.field('runs', runsWhat(automation));
  page.field('workspace', automation.workspace);
}

const onWhat = ({ trigger }: Automation) => `${trigger.source} ${trigger.event}`;
const runsWhat = ({ workflow }: Automation) => `${workflow.name} v${workflow.version}`;
