import { describe, expect, it } from 'vitest';
import { handleApprovals } from '../../../lambdas/api/approvals/approvals.ts';
import { handleRuns } from '../../../lambdas/api/runs/runs.ts';
import type { HttpEvent } from '../../../lambdas/entry/http.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import type { Commit } from '../../../lambdas/run/commit.ts';
import { STEP_OUTPUT_MAX_BYTES, type Step } from '../../../lambdas/run/step.ts';
import type { Workflow } from '../../../lambdas/workflow/workflow.ts';
import { accepted, requestedApproval } from '../../fakes/story.ts';

/** Lambda's limit for the whole response as JSON. */
const LAMBDA_MAX_BYTES = 6 * 1024 * 1024;
const STEPS = 1_000;
/** The largest output of a step, of characters that JSON escapes twice. */
const OUTPUT = '"'.repeat(STEP_OUTPUT_MAX_BYTES / 2 - 2);

const { run } = accepted();
const APPROVAL = requestedApproval(run);
const step = (index: number): Step => ({
  schemaVersion: 1,
  index,
  id: `s${index}`,
  tool: 'transform',
  leaseVersion: 1,
  attempt: 1,
  updatedAt: run.createdAt,
  status: 'succeeded',
  output: { index, text: OUTPUT },
  completedAt: run.createdAt,
});
const rows = Array.from({ length: STEPS }, (_, index) => step(index));
const workflow = { name: 'long', steps: rows.map(({ id, tool }) => ({ id, tool })) } as unknown as Workflow;
const commit = (seq: number): Commit => ({
  seq,
  at: run.createdAt,
  prevHash: 'p',
  hash: 'h',
  events: Array.from({ length: 50 }, (_, index) => ({
    type: 'run.cancel_requested',
    actor: 'olivia',
    reason: `${index} ${'"'.repeat(2_000)}`,
  })) as unknown as Commit['events'],
});
const commits = Array.from({ length: 150 }, (_, index) => commit(index + 1));

const runs = {
  load: async () => ({ run: { ...run, seq: commits.length }, steps: rows, trigger: {} }),
  listCommits: async (_tenant: string, _runId: string, { after, limit }: { after: number; limit: number }) =>
    commits.filter(({ seq }) => seq > after).slice(0, limit),
  receipts: async () => [],
  approvals: async () => [],
  evidence: async () => undefined,
  reruns: async () => [],
  runIdsStartingWith: async (_tenant: string, prefix: string) => [prefix],
};

async function ask(path: string, { query, index, api = {} }: { query?: object; index?: string; api?: object } = {}) {
  const routeKey = `GET /api/v1${path}`;
  const event = {
    routeKey,
    rawPath: path,
    pathParameters: { id: 'run_1', index },
    queryStringParameters: query,
    requestContext: { authorizer: { lambda: { tenant: 'acme', person: 'olivia', role: 'owner' } } },
  } as unknown as HttpEvent;
  const definitions = { workflow: async () => workflow, people: async () => [] };
  const answer = path.startsWith('/runs') ? handleRuns : handleApprovals;
  const answered = await answer(
    { runs, definitions, clock: { now: () => 0 }, cursorSecret: async () => 'secret', ...api } as never,
    event,
  );
  expect(Buffer.byteLength(JSON.stringify(answered))).toBeLessThan(LAMBDA_MAX_BYTES);
  return JSON.parse(answered.body ?? '');
}

describe('a run of 1,000 steps with the largest outputs', () => {
  it('is shown in responses that Lambda can return, every step once and in order', async () => {
    const first = await ask('/runs/{id}');
    const seen = [...first.steps];
    let answers = 1;
    for (let cursor = first.nextStepsCursor; cursor !== null; answers += 1) {
      const page = await ask('/runs/{id}/steps', { query: { cursor, limit: '100' } });
      expect(page.steps.length).toBeGreaterThan(0);
      seen.push(...page.steps);
      cursor = page.nextCursor;
    }
    expect(seen.map(({ id }) => id)).toEqual(rows.map(({ id }) => id));
    expect(answers).toBeLessThanOrEqual(STEPS / 10);
  });

  it('shows large values by size and hash, and in full for one step', async () => {
    const { steps } = await ask('/runs/{id}');
    const text = JSON.stringify(OUTPUT);
    expect(steps[7].output).toEqual({
      index: 7,
      text: { omitted: { bytes: Buffer.byteLength(text), sha256: sha256Hex(text) } },
    });
    const whole = await ask('/runs/{id}/steps/{index}', { index: '7' });
    expect(whole.step.output).toEqual({ index: 7, text: OUTPUT });
    await expect(ask('/runs/{id}/steps/{index}', { index: '5000' })).rejects.toMatchObject({ status: 404 });
  });

  it('has commits that fit, and shows where to continue', async () => {
    const { commits: shown, moreCommitsSince } = await ask('/runs/{id}');
    const seqs = shown.map(({ seq }: Commit) => seq);
    for (let since = moreCommitsSince, more = true; more; ) {
      const page = await ask('/runs/{id}/events', { query: { since: String(since) } });
      seqs.push(...page.commits.map(({ seq }: Commit) => seq));
      ({ next: since, more } = page);
    }
    expect(seqs).toEqual(commits.map(({ seq }) => seq));
  });

  it('accepts no cursor of another run', async () => {
    const { nextStepsCursor: cursor } = await ask('/runs/{id}');
    const other = { ...runs, load: async () => ({ run: { ...run, runId: 'run_2' }, steps: rows, trigger: {} }) };
    const asked = ask('/runs/{id}/steps', { query: { cursor }, api: { runs: other } });
    await expect(asked).rejects.toMatchObject({ code: 'BAD_CURSOR' });
  });
});

it('a page of large approvals ends at the size limit, and the next page continues', async () => {
  const large = Array.from({ length: 60 }, (_, index) => ({
    ...APPROVAL,
    approvalId: `run_1.${String(index).padStart(3, '0')}-0`,
    message: '"'.repeat(200_000),
  }));
  const place = ({ requestedAt, approvalId }: (typeof large)[number]) => `${requestedAt} ${approvalId}`;
  const pendingApprovals = async (_tenant: string, { limit, after = '' }: { limit: number; after?: string }) => ({
    items: large.filter((each) => place(each) > after).slice(0, limit),
  });
  const seen: string[] = [];
  let cursor: string | null | undefined;
  do {
    const query = { limit: '100', ...(cursor && { cursor }) };
    const page = await ask('/approvals', { query, api: { runs: { pendingApprovals } } });
    seen.push(...page.approvals.map(({ approvalId }: { approvalId: string }) => approvalId));
    cursor = page.nextCursor;
  } while (cursor);
  expect(seen).toEqual(large.map(({ approvalId }) => approvalId));
});

it('a response that is still too large is a 413 with a reason, never a 500', async () => {
  const huge = { ...APPROVAL, message: 'x'.repeat(7_000_000) };
  const asked = ask('/approvals/{id}', { api: { runs: { approval: async () => huge } } });
  await expect(asked).rejects.toMatchObject({ status: 413, code: 'TOO_LARGE' });
});
