import type { ResponseFrom } from '../../client/api-client.ts';
import { cut, widthOf } from '../terminal/fit-text.ts';
import { Page } from '../terminal/page.ts';
import { printable, type Terminal } from '../terminal/terminal.ts';
import { ago, dateAndTime } from '../terminal/times.ts';
import type { Call, Command } from './command.ts';
import { EXIT } from './failure.ts';
import { countsText } from './runs/list.ts';

type Status = ResponseFrom<'GET /api/v1/status'>;

/** A cut title must still say something. */
const TITLE_MIN_COLUMNS = 8;

export const status: Command = {
  name: 'status',
  args: [],
  description: 'show what is wrong, since when, and what to do',
  details:
    'Exit code: 0 if nobody must do anything, otherwise 1. RUNBOOK, "The first five minutes", explains each line.',
  options: {},
  async run(call) {
    const found = await call.api().call('GET /api/v1/status');
    if (call.json) call.printJson(found);
    else printStatus(call, printable(found));
    return found.healthy ? EXIT.ok : EXIT.failed;
  },
};

function printStatus({ terminal }: Call, { tenant, at, problems, counts, lastSweepAt, notChecked }: Status): void {
  const page = new Page(terminal);
  const nowMs = Date.parse(at);
  const acts = problems.filter(({ severity }) => severity === 'act').length;
  const verdict = acts === 0 ? 'nothing to do' : `${acts} ${acts === 1 ? 'problem' : 'problems'}`;
  page.title(tenant, { text: verdict, tone: acts === 0 ? 'good' : 'bad' });
  page.blank();
  for (const problem of problems) printProblem(terminal, page, problem, nowMs);
  if (problems.length > 0) page.blank();
  page.line(`runs: ${countsText(counts)}`);
  if (notChecked.length > 0) page.line(`your role does not see: ${notChecked.join(', ')}`, 'quiet');
  const sweep = lastSweepAt === null ? 'the sweeper has not run yet' : `last sweep: ${ago(lastSweepAt, nowMs)}`;
  page.line(`${dateAndTime(at)}, ${sweep}`, 'quiet');
}

/** Two lines for each problem, so that all of them fit on one screen. `!` marks what somebody must act on. */
function printProblem(terminal: Terminal, page: Page, problem: Status['problems'][number], nowMs: number): void {
  const { severity, what, since, oldestRun, command, runbook } = problem;
  const isUrgent = severity === 'act';
  const text = `${isUrgent ? '!' : '-'} ${what}${since === null ? '' : `, since ${ago(since, nowMs)}`}`;
  const run = oldestRun ? runText(oldestRun, terminal.columns - widthOf(text)) : '';
  page.exactLine(`${text}${run}`, isUrgent ? 'bad' : 'waiting');
  const next = `  ${command}`;
  const heading = `RUNBOOK: ${runbook}`;
  if (widthOf(next) + 2 + widthOf(heading) <= terminal.columns) {
    terminal.print(`${next}  ${terminal.paint('quiet', heading)}`);
    return;
  }
  page.exactLine(next);
  page.exactLine(`  ${heading}`, 'quiet');
}

/** `: run_3f9c2a01 TARGET_REFUSED Disk full`, as far as it fits. */
function runText({ runId, title, errorCode }: NonNullable<Status['problems'][number]['oldestRun']>, columns: number) {
  const known = `: ${[runId.slice(0, 12), ...(errorCode ? [errorCode] : [])].join(' ')}`;
  const left = columns - widthOf(known) - 1;
  if (left < 0) return '';
  return `${known}${title === null || left < TITLE_MIN_COLUMNS ? '' : ` ${cut(title, left)}`}`;
}
