import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import type { RunPage, RunSummary } from '../../client/api-client.ts';
import { type Cell, type Column, table } from '../../terminal/table.ts';
import { printable, type Terminal } from '../../terminal/terminal.ts';
import { age, duration } from '../../terminal/times.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, UsageError } from '../failure.ts';
import { noteMore, pagingOptions, readPages } from '../paging.ts';
import { shortRunIds } from './find-run.ts';
import { RUN_STATUSES, shortSubject, statusCell } from './run-text.ts';

export const runsList: Command = {
  name: 'runs list',
  args: [],
  description: 'list runs, newest first',
  details: `Statuses: ${RUN_STATUSES.slice(0, 7).join(', ')},\n  ${RUN_STATUSES.slice(7).join(', ')}.`,
  options: {
    status: { value: 'STATUS', description: 'only runs with this status' },
    ...pagingOptions('runs'),
  },
  async run(call) {
    const page = await readRuns(call);
    if (call.json) {
      call.printJson(page);
      return EXIT.ok;
    }
    printRuns(call, printable(page));
    return EXIT.ok;
  },
};

async function readRuns(call: Call): Promise<RunPage> {
  const status = call.option('status');
  if (status !== undefined && !RUN_STATUSES.includes(status)) {
    throw new UsageError(
      `unknown status "${status}"${didYouMean(status, RUN_STATUSES) || `; statuses: ${RUN_STATUSES.join(', ')}`}`,
    );
  }
  const api = call.api();
  const { items, nextCursor } = await readPages(call, async (asked) => {
    const page = await api.call('GET /api/v1/runs', {
      query: { status: status as RunSummary['status'] | undefined, ...asked },
    });
    return { items: page.runs, nextCursor: page.nextCursor };
  });
  return { runs: items, nextCursor };
}

function printRuns(call: Call, { runs, nextCursor }: RunPage): void {
  const { terminal } = call;
  if (runs.length === 0) terminal.note('no runs; start one with npx countersign webhook send FILE');
  else for (const line of runTable(terminal, runs)) terminal.print(line);
  noteMore(call, nextCursor);
}

/** On a terminal, short ids, ages and subjects; in a pipe, full values. */
function runTable(terminal: Terminal, runs: readonly RunSummary[]): string[] {
  const nowMs = Date.now();
  const shortened = shortRunIds(runs.map(({ runId }) => runId));
  const form = terminal.isInteractive
    ? { time: 'AGE', id: shortened, at: (at: string) => age(at, nowMs), subject: shortSubject }
    : { time: 'ACCEPTED', id: asItIs, at: asItIs, subject: asItIs };
  const row = (run: RunSummary): Cell[] => [
    form.id(run.runId),
    run.approvalOverdueSince ? { text: `${run.status}, overdue`, tone: 'bad' } : statusCell(run.status),
    form.at(run.createdAt),
    run.durationMs === null ? '-' : duration(run.durationMs),
    run.automation,
    run.subject === null ? '-' : form.subject(run.subject),
    run.title ?? '-',
  ];
  const columns: Column[] = [
    { title: 'RUN' },
    { title: 'STATUS' },
    { title: form.time },
    { title: 'TOOK' },
    { title: 'AUTOMATION', shrink: 'cut-end' },
    { title: 'SUBJECT', shrink: 'cut-start' },
    { title: 'TITLE', shrink: 'cut-end' },
  ];
  return table(columns, runs.map(row), terminal);
}

const asItIs = (text: string) => text;
