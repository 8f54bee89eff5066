import type { ResponseFrom } from '../../client/api-client.ts';
import { Page } from '../terminal/page.ts';
import { printable } from '../terminal/terminal.ts';
import { ago, dateAndTime } from '../terminal/times.ts';
import type { Call, Command } from './command.ts';
import { EXIT } from './failure.ts';
import { countsText } from './runs/list.ts';

type Status = ResponseFrom<'GET /api/v1/status'>;

/** Longer titles are cut, so that each problem has two lines on a wide terminal. */
const TITLE_MAX_CHARACTERS = 60;

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
  for (const { severity, what, since, oldestRun, command, runbook } of problems) {
    page.blank();
    page.line(`${what}${since === null ? '' : `, since ${ago(since, nowMs)}`}`, severity === 'act' ? 'bad' : 'waiting');
    if (oldestRun) page.line(`  oldest: ${oldestRun.runId.slice(0, 12)}${titled(oldestRun.title)}`);
    page.exactLine(`  ${command}`);
    page.line(`  RUNBOOK: ${runbook}`, 'quiet');
  }
  page.blank();
  page.line(`runs: ${countsText(counts)}`);
  page.line(lastSweepAt === null ? 'the sweeper has not run yet' : `last sweep: ${ago(lastSweepAt, nowMs)}`, 'quiet');
  if (notChecked.length > 0) page.line(`your role does not see: ${notChecked.join(', ')}`, 'quiet');
  page.line(dateAndTime(at), 'quiet');
}

function titled(title: string | null): string {
  if (title === null) return '';
  return ` ${title.length > TITLE_MAX_CHARACTERS ? `${title.slice(0, TITLE_MAX_CHARACTERS)}…` : title}`;
}
