import type { Api, RunDetail } from '../../client/api-client.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { PAGE_MAX } from '../paging.ts';
import { runReference } from './find-run.ts';
import { printRun } from './run-page.ts';

export const runsShow: Command = {
  name: 'runs show',
  args: ['ID'],
  description: 'show a run: steps, approvals, receipts, evidence',
  details: 'ID may be the first characters of the id.',
  options: {},
  async run(call) {
    const api = call.api();
    const run = await wholeRun(api, runReference(call.arg(0)));
    if (call.json) call.printJson(run);
    else printRun(printable(run), call.terminal);
    return EXIT.ok;
  },
};

/** Fetches all pages: a long run has more steps and commits than one response holds. */
async function wholeRun(api: Api, reference: string): Promise<RunDetail> {
  const { moreCommitsSince, ...first } = await api.call('GET /api/v1/runs/{id}', { params: { id: reference } });
  const { runId } = first;
  const run = await withAllSteps(api, first);
  const commits = [...run.commits];
  for (let since = moreCommitsSince; since !== undefined; ) {
    const page = await api.call('GET /api/v1/runs/{id}/events', { params: { id: runId }, query: { since } });
    commits.push(...page.commits);
    since = page.more && page.commits.length > 0 ? page.next : undefined;
  }
  return { ...run, commits };
}

async function withAllSteps(api: Api, run: RunDetail): Promise<RunDetail> {
  const whole = { ...run, nextStepsCursor: null };
  for (let cursor = run.nextStepsCursor; cursor; ) {
    const page = await api.call('GET /api/v1/runs/{id}/steps', {
      params: { id: run.runId },
      query: { cursor, limit: PAGE_MAX },
    });
    whole.steps = [...whole.steps, ...page.steps];
    // Two steps may share a receipt.
    const known = new Set(whole.receipts.map(({ key }) => key));
    whole.receipts = [...whole.receipts, ...page.receipts.filter(({ key }) => !known.has(key))];
    whole.approvals = [...whole.approvals, ...page.approvals];
    cursor = page.nextCursor;
  }
  return whole;
}
