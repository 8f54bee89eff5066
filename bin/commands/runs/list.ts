import { shortSubject } from '../../../lambdas/run/subject.ts';
import type { RunPage, RunSummary } from '../../client/api-client.ts';
import { type Cell, type Column, table } from '../../terminal/table.ts';
import { printable, type Terminal } from '../../terminal/terminal.ts';
import { age, dateAndTime, duration } from '../../terminal/times.ts';
import type { Call, Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { limitOf, noteMore, PAGE_MAX, pagingOptions } from '../paging.ts';
import { FILTER_OPTIONS, filterQuery } from './filter-options.ts';
import { shortRunIds } from './find-run.ts';
import { RUN_STATUSES, statusCell } from './run-status.ts';
import { noteUnknownNames } from './unknown-names.ts';

const LIMIT_DEFAULT = 25;
/** A search compares 5,000 titles, or other fields of 100 runs, with each request. */
const REQUESTS_MAX = 20;

export const runsList: Command = {
  name: 'runs list',
  args: [],
  description: 'list runs, newest first',
  details: `Options together select the runs that match all of them.\nStatuses: ${RUN_STATUSES.slice(0, 7).join(', ')},\n  ${RUN_STATUSES.slice(7).join(', ')}.`,
  options: {
    ...FILTER_OPTIONS,
    counts: { description: 'also count the runs by status' },
    ...pagingOptions('runs'),
  },
  async run(call) {
    const page = await readRuns(call);
    if (call.json) call.printJson(page);
    else {
      printRuns(call, printable(page));
      if (page.runs.length === 0) await noteUnknownNames(call.terminal, call.api(), filterQuery(call));
    }
    return EXIT.ok;
  },
};

/** Reads further pages until there are as many runs as asked for: a page leaves out the runs that do not match. */
async function readRuns(call: Call): Promise<RunPage> {
  const api = call.api();
  const filter = filterQuery(call);
  const wanted = call.isSet('all') ? Number.POSITIVE_INFINITY : Number(limitOf(call) ?? LIMIT_DEFAULT);
  const counts = call.isSet('counts') ? 'true' : undefined;
  const read = (cursor: string | undefined, limit: number, first: boolean) =>
    api.call('GET /api/v1/runs', { query: { ...filter, ...(first && { counts }), limit, cursor } });
  let page = await read(call.option('cursor'), Math.min(wanted, PAGE_MAX), true);
  const runs = [...page.runs];
  for (let requests = 1; page.nextCursor !== null && runs.length < wanted; requests += 1) {
    if (requests === REQUESTS_MAX && !call.isSet('all')) break;
    const next = await read(page.nextCursor, Math.min(wanted - runs.length, PAGE_MAX), false);
    runs.push(...next.runs);
    page = { ...next, counts: page.counts };
  }
  return { ...page, runs };
}

function printRuns(call: Call, { runs, nextCursor, searchedBackTo, counts }: RunPage): void {
  const { terminal } = call;
  const isFiltered = Object.keys(filterQuery(call)).length > 0;
  if (runs.length > 0) for (const line of runTable(terminal, runs)) terminal.print(line);
  else terminal.note(isFiltered ? 'no run matches' : 'no runs; start one with npx countersign webhook send FILE');
  if (counts) terminal.print(`\n${countsText(counts)}`);
  if (searchedBackTo !== undefined) terminal.note(`\nsearched back to ${dateAndTime(searchedBackTo)}`);
  noteMore(call, nextCursor);
}

/** `running 3, failed_terminal 2, succeeded more than 1000`. */
export function countsText({ byStatus, countedBackTo }: NonNullable<RunPage['counts']>): string {
  const since = countedBackTo === undefined ? '' : ` (accepted since ${dateAndTime(countedBackTo)})`;
  const each = byStatus.map(
    ({ status, count, atLeast }) => `${status} ${atLeast && !since ? 'more than ' : ''}${count}`,
  );
  return `${each.join(', ') || 'no runs'}${since}`;
}

/** On a terminal, short ids, ages and subjects; in a pipe, full values. */
export function runTable(terminal: Terminal, runs: readonly RunSummary[]): string[] {
  const nowMs = Date.now();
  const shortened = shortRunIds(runs.map(({ runId }) => runId));
  const form = terminal.isInteractive
    ? {
        time: 'AGE',
        id: shortened,
        at: (at: string) => age(at, nowMs),
        subject: shortSubject,
        overdue: () => 'approval overdue',
      }
    : { time: 'ACCEPTED', id: asItIs, at: asItIs, subject: asItIs, overdue: (status: string) => `${status}, overdue` };
  const row = (run: RunSummary): Cell[] => [
    form.id(run.runId),
    run.approvalOverdueSince ? { text: form.overdue(run.status), tone: 'bad' } : statusCell(run.status),
    run.error?.code ?? '-',
    form.at(run.createdAt),
    run.durationMs === null ? '-' : duration(run.durationMs),
    run.automation,
    run.subject === null ? '-' : form.subject(run.subject),
    run.title ?? '-',
  ];
  const columns: Column[] = [
    { title: 'RUN' },
    { title: 'STATUS' },
    { title: 'ERROR' },
    { title: form.time },
    { title: 'TOOK' },
    { title: 'AUTOMATION', shrink: 'cut-end' },
    { title: 'SUBJECT', shrink: 'cut-start' },
    { title: 'TITLE', shrink: 'cut-end' },
  ];
  const rows = runs.map(row);
  // Programs that read a pipe count columns. For a person the list fits 80: columns without a value are left out, and
  // beside errors the times that runs took.
  const hasError = runs.some(({ error }) => error !== null);
  const isShown = ({ title }: Column, index: number) =>
    !terminal.isInteractive || (rows.some((cells) => cells[index] !== '-') && !(hasError && title === 'TOOK'));
  const shown = columns.flatMap((column, index) => (isShown(column, index) ? [index] : []));
  const of = <Item>(items: readonly Item[]): Item[] => shown.map((index) => items[index] as Item);
  return table(of(columns), rows.map(of), terminal);
}

const asItIs = (text: string) => text;
