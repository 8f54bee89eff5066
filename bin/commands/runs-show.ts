import type { Api, RunDetail } from './api.ts';
import type { Command } from './command.ts';
import { EXIT } from './failure.ts';
import { printRun } from './run-page.ts';
import { findRunId } from './run-reference.ts';
import { printable } from './terminal.ts';

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

/** A long run has more commits than its page holds; the rest is fetched, so that what is shown is the whole chain. */
async function wholeRun(api: Api, runId: string): Promise<RunDetail> {
  const { moreCommitsSince, ...run } = await api.run(runId);
  const commits = [...run.commits];
  for (let since = moreCommitsSince; since !== undefined; ) {
    const page = await api.events(runId, since);
    commits.push(...page.commits);
    since = page.more && page.commits.length > 0 ? page.next : undefined;
  }
  return { ...run, commits };
}
