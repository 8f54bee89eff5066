import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Operation, Performance } from '../../lambdas/connectors/connector.ts';
import { createComment, deleteComment } from '../../lambdas/connectors/github-comments.ts';
import { addLabels, removeLabels } from '../../lambdas/connectors/github-labels.ts';
import { setStatus } from '../../lambdas/connectors/github-status.ts';
import { FakeClock, STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { FakeOutside } from '../fakes/fake-outside.ts';

const issue = { owner: 'octo-org', repo: 'payments', number: 7 };
const commit = { owner: 'octo-org', repo: 'payments', sha: 'a'.repeat(40) };
const MARK = 'countersign:0123456789abcdef0123';

let outside: FakeOutside;
let performance: Performance;
beforeEach(() => {
  outside = new FakeOutside(new FakeClock());
  outside.issueLabels.set('octo-org/payments#7', ['bug', 'triage']);
  vi.stubGlobal('fetch', outside.fetch);
  performance = { access: outside.access().github, mark: MARK, openSince: STORY_BEGINS_AT };
});
afterEach(() => vi.unstubAllGlobals());

const readBefore = async ({ before, parse }: Operation, input: unknown) => before?.(parse(input), performance.access);
/** As the worker makes a first attempt. */
const perform = async (operation: Operation, input: unknown) =>
  operation.perform(operation.parse(input), { ...performance, before: await readBefore(operation, input) });

it('a write that found everything as asked changes nothing, and has nothing to take back', async () => {
  const there = { ...issue, labels: ['Bug'] };
  expect((await perform(addLabels, there)).reversal).toHaveProperty('irreversible');
  const { reversal, output } = await perform(removeLabels, { ...issue, labels: ['gone'] });
  expect(reversal).toHaveProperty('irreversible');
  expect(output).toEqual({ removed: [] });
  expect(outside.callsOf('DELETE github')).toEqual([]);
});

it('only the labels that a write took away come back', async () => {
  const { reversal } = await perform(removeLabels, { ...issue, labels: ['bug', 'gone'] });
  const back = { tool: 'github.labels.add', input: { ...issue, labels: ['bug'] }, expects: { bug: false } };
  expect(reversal).toEqual(back);
});

describe('labels taken away in part', () => {
  const input = { ...issue, labels: ['bug', 'triage'] };
  /** The first is taken away, the second refused. */
  const removeWith = async (status: number) => {
    const before = await readBefore(removeLabels, input);
    let calls = 0;
    vi.stubGlobal('fetch', (url: string, init: RequestInit) => {
      calls += 1;
      if (calls === 2) outside.next('DELETE github', { status });
      return outside.fetch(url, init);
    });
    return removeLabels.perform(input, { ...performance, before });
  };
  const about = expect.stringContaining('1 of 2');

  it('leave an open outcome if the rest may be taken away later, which a repeat settles', async () => {
    await expect(removeWith(429)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', message: about });
    expect(outside.issueLabels.get('octo-org/payments#7')).toEqual(['triage']);
    await removeLabels.perform(input, performance);
    expect(outside.issueLabels.get('octo-org/payments#7')).toEqual([]);
  });

  it('are an incomplete write if the rest was refused for good, and come back alone', async () => {
    expect(await removeWith(403)).toMatchObject({
      incomplete: about,
      output: { removed: ['bug'] },
      reversal: { input: { ...issue, labels: ['bug'] }, expects: { bug: false } },
    });
    expect(outside.issueLabels.get('octo-org/payments#7')).toEqual(['triage']);
  });
});

it('a comment that quotes ours is not taken for it', async () => {
  const path = 'http://github/repos/octo-org/payments/issues/7/comments';
  const quoting = { body: `> It is so.\n> \n> <!-- ${MARK} -->\n\nIs it?` };
  await outside.fetch(path, { method: 'POST', body: JSON.stringify(quoting) });
  const input = { ...issue, body: 'It is so.' };
  expect(await createComment.probe?.(input, performance)).toBeUndefined();
  const { output } = await perform(createComment, input);
  expect(await createComment.probe?.(input, performance)).toMatchObject({ output, recovered: true });
});

it('a probe reads on, page after page, until it finds its comment', async () => {
  const asked: (string | null)[] = [];
  const others = Array.from({ length: 100 }, (_, id) => ({ id, body: 'another' }));
  vi.stubGlobal('fetch', async (url: string) => {
    asked.push(new URL(url).searchParams.get('page'));
    return Response.json(asked.length < 3 ? others : [{ id: 500, body: `x\r\n\r\n<!-- ${MARK} -->` }]);
  });
  const found = await createComment.probe?.({ ...issue, body: 'x' }, performance);
  expect(found).toMatchObject({ output: { commentId: 500 } });
  expect(asked).toEqual(['1', '2', '3']);
});

it('a comment that somebody changed is not what its undo expects', async () => {
  const { reversal } = await perform(createComment, { ...issue, body: 'first' });
  if (!('tool' in reversal)) throw new Error(reversal.irreversible);
  const change = async () => Response.json({ id: 1, body: 'changed' });
  vi.stubGlobal('fetch', change);
  expect(await readBefore(deleteComment, reversal.input)).not.toEqual(reversal.expects);
});

it('deleting a comment that was never there is refused, not called done', async () => {
  const never = { owner: 'octo-org', repo: 'payments', commentId: 99 };
  expect(await readBefore(deleteComment, never)).toEqual({ comment: null });
  await expect(perform(deleteComment, never)).rejects.toMatchObject({ code: 'TARGET_REFUSED', retryable: false });
  expect(outside.callsOf('DELETE github')).toEqual([]);
});

it('the first status of a context cannot be taken away; a later one gives way to the one before, whole', async () => {
  const first = { ...commit, context: 'gate', state: 'pending', description: 'waiting', targetUrl: 'https://e.com/1' };
  await perform(setStatus, { ...commit, context: 'another', state: 'error' });
  expect((await perform(setStatus, first)).reversal).toHaveProperty('irreversible');
  const { reversal } = await perform(setStatus, { ...commit, context: 'gate', state: 'success' });
  expect(reversal).toEqual({
    tool: 'github.status.set',
    input: first,
    expects: { state: 'success', description: '', targetUrl: '' },
  });
});
