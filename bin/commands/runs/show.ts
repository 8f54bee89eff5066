import type { Api, RunDetail } from '../../client/api-client.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { findRunId } from './find-run.ts';
import { printRun } from './run-page.ts';

export const runsShow: Command = {
  name: 'runs show',
  takes: ['ID'],
  says: 'one run: its steps, approvals, receipts, commits and evidence',
  details: 'A beginning of the id is enough, as long as only one of the newest 100 runs has it.',
  options: {},
  async run(call) {
    const api = call.api();
    const run = await wholeRun(api, await findRunId(api, call.positional(0)));
    if (call.json) call.printJson(run);
    else printRun(printable(run), call.terminal);
    return EXIT.ok;
  },
};

/** A long run has more steps and commits than one answer holds; the rest is fetched, so that all of it is shown. */
async function wholeRun(api: Api, runId: string): Promise<RunDetail> {
  const { moreCommitsSince, ...first } = await api.run(runId);
  const run = await withAllSteps(api, first);
  const commits = [...run.commits];
  for (let since = moreCommitsSince; since !== undefined; ) {
    const page = await api.events(runId, since);
    commits.push(...page.commits);
    since = page.more && page.commits.length > 0 ? page.next : undefined;
  }
  return { ...run, commits };
}

async function withAllSteps(api: Api, run: RunDetail): Promise<RunDetail> {
  const whole = { ...run, nextStepsCursor: null };
  for (let cursor = run.nextStepsCursor; cursor; ) {
    const page = await api.steps(run.runId, cursor);
    whole.steps = [...whole.steps, ...page.steps];
    // Two steps may rest on one receipt.
    const known = new Set(whole.receipts.map(({ key }) => key));
    whole.receipts = [...whole.receipts, ...page.receipts.filter(({ key }) => !known.has(key))];
    whole.approvals = [...whole.approvals, ...page.approvals];
    cursor = page.nextCursor;
  }
  return whole;
}
