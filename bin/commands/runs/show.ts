import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import type { Api, RunDetail, ShownAction } from '../../client/api-client.ts';
import { Page } from '../../terminal/page.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../failure.ts';
import { PAGE_MAX } from '../paging.ts';
import { runReference } from './find-run.ts';
import { statusCell } from './run-status.ts';
import { printStep } from './run-values.ts';

/** As connectors/session/session.ts names it, which would load all connectors. */
const SESSION_TOOL = 'agent.session';

export const runsShow: Command = {
  name: 'runs show',
  args: ['ID'],
  description: 'show a run: steps, actions of sessions, values, receipts, evidence',
  details: 'ID may be the first characters of the id. Long values are cut; see --step.',
  options: { step: { value: 'STEP', description: 'show the values of one step, in full' } },
  async run(call) {
    const api = call.api();
    const run = await wholeRun(api, runReference(call.arg(0)));
    const step = call.option('step');
    if (step !== undefined) return showStep(call, api, run, step);
    const actions = await actionsOf(api, run);
    if (call.json) call.printJson({ ...run, ...(actions.length > 0 && { actions }) });
    else {
      const { printRun } = await import('./run-page.ts');
      printRun(printable(run), call.terminal, printable(actions));
    }
    return EXIT.ok;
  },
};

/** The route for one step leaves nothing out, however large. */
async function showStep(call: Call, api: Api, { runId, steps }: RunDetail, id: string): Promise<ExitCode> {
  const names = steps.map((step) => step.id);
  const index = steps.find((step) => step.id === id)?.index;
  if (index === undefined) {
    throw new UsageError(`the run has no step "${id}"${didYouMean(id, names) || `; steps: ${names.join(', ')}`}`);
  }
  const found = await api.call('GET /api/v1/runs/{id}/steps/{index}', { params: { id: runId, index: String(index) } });
  if (call.json) call.printJson(found);
  else {
    const { step, receipt } = printable(found);
    const page = new Page(call.terminal);
    page.title(`${step.id}: ${step.tool}`, statusCell(step.status));
    printStep(page, step, receipt ?? undefined);
  }
  return EXIT.ok;
}

/** What the sessions of the run proposed. Runs without a session are not asked for it. */
async function actionsOf(api: Api, { runId, steps }: RunDetail): Promise<ShownAction[]> {
  const actions: ShownAction[] = [];
  if (!steps.some(({ tool }) => tool === SESSION_TOOL)) return actions;
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const query = { limit: PAGE_MAX, ...(cursor && { cursor }) };
    const page = await api.call('GET /api/v1/runs/{id}/actions', { params: { id: runId }, query });
    actions.push(...page.actions);
    cursor = page.nextCursor;
  }
  return actions;
}

/** Fetches all pages: a long run has more steps and commits than one response contains. */
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
