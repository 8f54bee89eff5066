import type { ResponseFrom } from '../../../client/api-client.ts';
import { type Column, table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { runReference } from './find-run.ts';

type Subscriptions = ResponseFrom<'GET /api/v1/runs/{id}/subscriptions'>;

const COLUMNS: readonly Column[] = [
  { title: 'NOTIFIED', shrink: 'wrap' },
  { title: 'STATE', shrink: 'wrap' },
];

export const runSubscriptions: readonly Command[] = [
  {
    name: 'runs subscribe',
    args: ['RUN'],
    description: 'be notified in Slack when a run ends',
    options: { channel: { value: 'CHANNEL', description: 'notify a Slack channel instead of you' } },
    async run(call) {
      const api = call.api();
      const id = runReference(call.arg(0));
      const channel = call.option('channel');
      const body = channel === undefined ? {} : { channel };
      print(call, await api.call('POST /api/v1/runs/{id}/subscriptions', { params: { id }, body }));
      return EXIT.ok;
    },
  },
  {
    name: 'runs subscriptions',
    args: ['RUN'],
    description: 'show who is notified of the end of a run',
    options: {},
    async run(call) {
      const api = call.api();
      const id = runReference(call.arg(0));
      print(call, await api.call('GET /api/v1/runs/{id}/subscriptions', { params: { id } }));
      return EXIT.ok;
    },
  },
];

function print(call: Call, found: Subscriptions): void {
  const { subscriptions } = printable(found);
  const rows = subscriptions.map(({ to, notifiedAt, skipped }) => [
    'person' in to ? to.person : to.channel,
    notifiedAt !== null ? `notified ${notifiedAt}` : (skipped ?? 'when the run ends'),
  ]);
  if (call.json) call.printJson(found);
  else if (rows.length === 0) call.terminal.note('nobody is notified; countersign runs subscribe RUN');
  else for (const line of table(COLUMNS, rows, call.terminal)) call.terminal.print(line);
}
