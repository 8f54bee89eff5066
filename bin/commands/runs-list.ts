import type { Api, RunPage, RunSummary } from './api.ts';
import type { Call, Command } from './command.ts';
import { EXIT, UsageError } from './failure.ts';
import { shortRunIds } from './run-reference.ts';
import { RUN_STATUSES, statusCell } from './run-words.ts';
import { type Cell, type Column, table } from './table.ts';
import { printable, type Terminal } from './terminal.ts';
import { age, duration } from './times.ts';

const PAGE_MAX = 100;

export const runsList: Command = {
  name: 'runs list',
  takes: [],
  says: 'the newest runs, one per line',
  details: `Statuses: ${RUN_STATUSES.slice(0, 7).join(', ')},\n  ${RUN_STATUSES.slice(7).join(', ')}.`,
  options: {
    status: { value: 'STATUS', says: 'only runs in this status' },
    limit: { value: 'N', says: `runs per page, 1 to ${PAGE_MAX} (default 25)` },
    all: { says: 'every page, not only the first' },
    cursor: { value: 'CURSOR', says: 'go on where an earlier page ended' },
  },
  async run(call) {
    const page = await readPages(call.api(), call);
    if (call.json) {
      call.printJson(page);
      return EXIT.ok;
    }
    printRuns(call, printable(page));
    return EXIT.ok;
  },
};

async function readPages(api: Api, call: Call): Promise<RunPage> {
  const status = call.text('status');
  if (status !== undefined && !RUN_STATUSES.includes(status)) {
    throw new UsageError(`there is no status "${status}"; there are ${RUN_STATUSES.join(', ')}`);
  }
  const limit = call.text('limit') ?? (call.isSet('all') ? String(PAGE_MAX) : undefined);
  if (limit !== undefined && !(/^\d{1,3}$/.test(limit) && Number(limit) >= 1 && Number(limit) <= PAGE_MAX)) {
    throw new UsageError(`--limit is a number from 1 to ${PAGE_MAX}, not "${limit}"`);
  }
  let page = await api.runs({ status, limit, cursor: call.text('cursor') });
  const runs = [...page.runs];
  while (call.isSet('all') && page.nextCursor !== null) {
    page = await api.runs({ status, limit, cursor: page.nextCursor });
    runs.push(...page.runs);
  }
  return { runs, nextCursor: page.nextCursor };
}

function printRuns({ terminal }: Call, { runs, nextCursor }: RunPage): void {
  if (runs.length === 0) terminal.note('no runs; send one with npx countersign webhook send FILE');
  else for (const line of runTable(terminal, runs)) terminal.print(line);
  if (nextCursor !== null) terminal.note(`\nthere are more: --all, or --cursor ${nextCursor}`);
}

/** A person gets what tells the runs apart; a pipe gets everything in full. */
function runTable(terminal: Terminal, runs: readonly RunSummary[]): string[] {
  const nowMs = Date.now();
  const shortened = shortRunIds(runs.map(({ runId }) => runId));
  const form = terminal.isInteractive
    ? { time: 'AGE', id: shortened, at: (at: string) => age(at, nowMs), subject: shortSubject }
    : { time: 'ACCEPTED', id: asItIs, at: asItIs, subject: asItIs };
  const row = (run: RunSummary): Cell[] => [
    form.id(run.runId),
    statusCell(run.status),
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
    { title: 'AUTOMATION', keeps: 'start' },
    { title: 'SUBJECT', keeps: 'end' },
    { title: 'TITLE', keeps: 'start' },
  ];
  return table(columns, runs.map(row), terminal);
}

const asItIs = (text: string) => text;

/** `servicenow:acme:INC0010001` is known by its end. */
const shortSubject = (subject: string) => subject.slice(subject.lastIndexOf(':') + 1);
