import type { ResponseFrom } from '../../client/api-client.ts';
import { groupedBy } from '../../lambdas/run/grouped-by.ts';
import { type Cell, type Column, table } from '../terminal/table.ts';
import { printable, type Terminal } from '../terminal/terminal.ts';
import { age } from '../terminal/times.ts';
import type { Call, Command, Option } from './command.ts';
import { EXIT, UsageError } from './failure.ts';
import { runReference } from './runs/find-run.ts';

type Listed = ResponseFrom<'GET /api/v1/dead-letters'>;
type QueueCount = Listed['queues'][number];
type Letter = Listed['deadLetters'][number];

const SELECTION: Record<string, Option> = {
  queue: { value: 'QUEUE', description: 'only messages of this queue: steps, evidence or approvals' },
  run: { value: 'ID', description: 'only messages of this run' },
};

const selection = (call: Call) => {
  const run = call.option('run');
  return {
    queue: call.option('queue') as QueueCount['queue'] | undefined,
    runId: run === undefined ? undefined : runReference(run),
  };
};

export const deadLetters: readonly Command[] = [
  {
    name: 'dead-letters list',
    args: [],
    description: 'list messages that failed too often, with their runs',
    details:
      'Only messages of your tenant. SQS hides them for a moment while they are listed. On a terminal, one line for\n' +
      'each run; in a pipe or with --json, every message with its id.',
    options: SELECTION,
    async run(call) {
      const found = await call.api().call('GET /api/v1/dead-letters', { query: selection(call) });
      if (call.json) call.printJson(found);
      else printLetters(call, printable(found));
      return EXIT.ok;
    },
  },
  {
    name: 'dead-letters redrive',
    args: [],
    description: 'return dead letters to their queues',
    details: 'Fix the cause first. A run that has continued ignores its old messages.',
    options: {
      id: { value: 'ID', repeatable: true, description: 'only this message, by its id in dead-letters list' },
      ...SELECTION,
      all: { description: 'all messages of your tenant' },
    },
    async run(call) {
      const { queue, runId } = selection(call);
      const given = call.options('id');
      const ids = given.length > 0 ? [...given] : undefined;
      const isSelected = ids !== undefined || queue !== undefined || runId !== undefined;
      if (!isSelected && !call.isSet('all')) {
        throw new UsageError('name the messages: --id, --run, --queue or --all');
      }
      if (isSelected && call.isSet('all'))
        throw new UsageError('pass --all, or the messages with --id, --run or --queue');
      const { redriven } = await call.api().call('POST /api/v1/dead-letters/redrive', { body: { ids, queue, runId } });
      if (call.json) call.printJson({ queues: redriven });
      else printCounts(call, redriven, 'returned');
      const count = redriven.reduce((sum, { messages }) => sum + messages, 0);
      if (!ids || count >= ids.length) return EXIT.ok;
      call.terminal.note(`${ids.length - count} of these ids were not found; dead-letters list --json shows all`);
      return EXIT.failed;
    },
  },
];

export function printCounts({ terminal }: Call, queues: readonly QueueCount[], what: string): void {
  for (const { queue, messages, complete } of queues) {
    const more = complete ? '' : '; there may be more, so repeat the command';
    terminal.print(`${queue}: ${messages} messages ${what}${more}`);
  }
}

function printLetters(call: Call, { queues, deadLetters: letters }: Listed): void {
  const { terminal } = call;
  if (letters.length === 0) terminal.note('no dead letters');
  else
    for (const line of terminal.isInteractive ? byRun(letters, terminal) : everyLetter(letters, terminal))
      terminal.print(line);
  for (const reason of new Set(letters.map((letter) => letter.reason))) terminal.note(`\n${reason}`);
  if (queues.some(({ complete }) => !complete)) terminal.note('there are more; these are the first that SQS returned');
  const [run] = letters.flatMap((letter) => letter.run ?? []);
  if (run === undefined || !terminal.isInteractive) return;
  terminal.note(`send them again: npx countersign dead-letters redrive --run ${run.runId.slice(0, 12)}, or --all`);
}

const TITLE: Column = { title: 'TITLE', shrink: 'cut-end' };

function everyLetter(letters: readonly Letter[], terminal: Terminal): string[] {
  const titles = ['ID', 'QUEUE', 'ASKS FOR', 'SENT', 'ATTEMPTS', 'RUN', 'STATUS'];
  const rows = letters.map(({ id, queue, kind, run, sentAt, attempts }): Cell[] => [
    id,
    queue,
    kind ?? '-',
    sentAt,
    String(attempts),
    run?.runId ?? '-',
    run?.status ?? '-',
    run?.title ?? '-',
  ]);
  return table([...titles.map((title) => ({ title })), TITLE], rows, terminal);
}

/** A message that fails is sent again, so a run can have many dead letters of one kind. Without a run, one row for each. */
function byRun(letters: readonly Letter[], terminal: Terminal): string[] {
  const groups = groupedBy(letters, ({ id, queue, kind, run }) => `${queue} ${kind} ${run?.runId ?? id}`);
  const rows = [...groups.values()].map((group): Cell[] => {
    const [{ id = '', queue = '', kind = null, run = null } = {}] = group;
    const oldest = group.map(({ sentAt }) => sentAt).sort()[0] ?? '';
    const what = run?.title ?? `--id ${id}`;
    return [
      String(group.length),
      queue,
      kind ?? '-',
      age(oldest, Date.now()),
      run?.runId.slice(0, 12) ?? '-',
      run?.status ?? '-',
      what,
    ];
  });
  const titles = ['MESSAGES', 'QUEUE', 'ASKS FOR', 'OLDEST', 'RUN', 'STATUS'];
  return table([...titles.map((title) => ({ title })), TITLE], rows, terminal);
}
