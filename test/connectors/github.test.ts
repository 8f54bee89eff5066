import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Operation, WriteContext } from '../../lambdas/connectors/connector.ts';
import { createComment, deleteComment } from '../../lambdas/connectors/github/comments.ts';
import { addLabels, removeLabels } from '../../lambdas/connectors/github/labels.ts';
import { setStatus } from '../../lambdas/connectors/github/status.ts';
import { FakeClock, STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { FakeTargets } from '../fakes/targets/fake-targets.ts';

const issue = { owner: 'octo-org', repo: 'payments', number: 7 };
const commit = { owner: 'octo-org', repo: 'payments', sha: 'a'.repeat(40) };
const MARK = 'countersign:0123456789abcdef0123';

let outside: FakeTargets;
let performance: WriteContext;
beforeEach(() => {
  outside = new FakeTargets(new FakeClock());
  outside.issueLabels.set('octo-org/payments#7', ['bug', 'triage']);
  vi.stubGlobal('fetch', outside.fetch);
  performance = { access: outside.access().github, mark: MARK, openSince: STORY_BEGINS_AT };
});
afterEach(() => vi.unstubAllGlobals());

const readBefore = async ({ before, parse }: Operation, input: unknown) => before?.(parse(input), performance.access);
/** Like the first attempt of a worker. */
const perform = async (operation: Operation, input: unknown) =>
  operation.perform(operation.parse(input), { ...performance, before: await readBefore(operation, input) });

it('a write whose target already has the values changes nothing and has no reversal', async () => {
  const there = { ...issue, labels: ['Bug'] };
  expect((await perform(addLabels, there)).reversal).toHaveProperty('irreversible');
  const { reversal, output } = await perform(removeLabels, { ...issue, labels: ['gone'] });
  expect(reversal).toHaveProperty('irreversible');
  expect(output).toEqual({ removed: [] });
  expect(outside.callsOf('DELETE github')).toEqual([]);
});

it('an undo adds only the labels that the write removed', async () => {
  const { reversal } = await perform(removeLabels, { ...issue, labels: ['bug', 'gone'] });
  const back = { tool: 'github.labels.add', input: { ...issue, labels: ['bug'] }, expects: { bug: false } };
  expect(reversal).toEqual(back);
});

describe('labels that were removed in part', () => {
  const input = { ...issue, labels: ['bug', 'triage'] };
  /** The first is removed, the second refused. */
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

  it('leave the outcome unknown if a repeat can remove the rest', async () => {
    await expect(removeWith(429)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', message: about });
    expect(outside.issueLabels.get('octo-org/payments#7')).toEqual(['triage']);
    await removeLabels.perform(input, performance);
    expect(outside.issueLabels.get('octo-org/payments#7')).toEqual([]);
  });

  it('are an incomplete write if the rest was refused, and only they are undone', async () => {
    expect(await removeWith(403)).toMatchObject({
      incomplete: about,
      output: { removed: ['bug'] },
      reversal: { input: { ...issue, labels: ['bug'] }, expects: { bug: false } },
    });
    expect(outside.issueLabels.get('octo-org/payments#7')).toEqual(['triage']);
  });
});

it('a comment that quotes the mark is not the marked comment', async () => {
  const path = 'http://github/repos/octo-org/payments/issues/7/comments';
  const quoting = { body: `> It is so.\n> \n> <!-- ${MARK} -->\n\nIs it?` };
  await outside.fetch(path, { method: 'POST', body: JSON.stringify(quoting) });
  const input = { ...issue, body: 'It is so.' };
  expect(await createComment.probe?.(input, performance)).toBeUndefined();
  const { output } = await perform(createComment, input);
  expect(await createComment.probe?.(input, performance)).toMatchObject({ output, recovered: true });
});

describe('a list of several pages', () => {
  const OTHERS = [{ id: 1, body: 'another' }];
  const probe = (access = performance.access) =>
    createComment.probe?.(createComment.parse({ ...issue, body: 'x' }), { ...performance, access });
  /** Returns pages with a link to the next one, up to the last. */
  const pages = (linkTo: (asked: number) => string | undefined, last: object[] = OTHERS) => {
    const asked: string[] = [];
    vi.stubGlobal('fetch', async (url: string) => {
      asked.push(url);
      const next = linkTo(asked.length);
      if (next === undefined) return Response.json(last);
      return Response.json(OTHERS, { headers: { link: `<http://github/x>; rel="last", <${next}>; rel="next"` } });
    });
    return asked;
  };

  it('is read by GitHub’s links until the comment is found, also with short pages', async () => {
    const next = (page: number) => `http://github/repositories/9/issues/7/comments?page=${page}`;
    const ours = [{ id: 500, body: `x\r\n\r\n<!-- ${MARK} -->` }];
    const asked = pages((count) => (count < 3 ? next(count + 1) : undefined), ours);
    expect(await probe()).toMatchObject({ output: { commentId: 500 } });
    expect(asked.slice(1)).toEqual([next(2), next(3)]);
  });

  it('ends with the page without a next link, also if it is full', async () => {
    const full = Array.from({ length: 100 }, (_, id) => ({ id, body: 'another' }));
    const asked = pages(() => undefined, full);
    expect(await probe()).toBeUndefined();
    expect(asked).toHaveLength(1);
  });

  it('that never ends leaves the outcome unknown', async () => {
    const asked = pages(() => 'http://github/repositories/9/issues/7/comments?page=2');
    await expect(probe()).rejects.toMatchObject({ code: 'TARGET_REFUSED', retryable: false });
    expect(asked).toHaveLength(10);
  });

  it('is not read from another address, because the credential is for this one', async () => {
    for (const elsewhere of [
      'http://evil.example/repositories/9',
      'http://github.evil.example/x',
      'https://github/x',
    ]) {
      const asked = pages(() => elsewhere);
      await expect(probe()).rejects.toMatchObject({ code: 'TARGET_REFUSED', retryable: false });
      expect(asked).toHaveLength(1);
    }
    const enterprise = { ...performance.access, baseUrl: 'http://GHE.example/api/v3/' };
    const asked = pages((count) => (count < 2 ? 'http://ghe.example/api/v3/repositories/9?page=2' : undefined));
    expect(await probe(enterprise)).toBeUndefined();
    expect(asked[1]).toBe('http://GHE.example/api/v3/repositories/9?page=2');
  });
});

describe('every call of GitHub', () => {
  it('has the product name, and the right path also if the address ends with a slash', async () => {
    const calls: { url: string; agent: string | null }[] = [];
    vi.stubGlobal('fetch', async (url: string, { headers }: RequestInit) => {
      calls.push({ url, agent: new Headers(headers).get('user-agent') });
      return Response.json([{ name: 'bug' }]);
    });
    const access = { ...performance.access, baseUrl: 'http://github/api/v3//' };
    await addLabels.perform(addLabels.parse({ ...issue, labels: ['bug'] }), { ...performance, access });
    expect(calls).toEqual([
      { url: 'http://github/api/v3/repos/octo-org/payments/issues/7/labels', agent: 'Countersign' },
    ]);
  });

  it.each([
    ['You have exceeded a secondary rate limit. Please wait a few minutes before you try again.', {}],
    ['You have triggered an abuse detection mechanism.', { 'x-ratelimit-remaining': '4999' }],
  ])('is retried after a minute for a secondary rate limit without a duration: %s', async (message, headers) => {
    vi.stubGlobal('fetch', async () => Response.json({ message }, { status: 403, headers }));
    const limited = { code: 'TARGET_REFUSED', retryable: true, retryAfterMs: 60_000 };
    await expect(perform(addLabels, { ...issue, labels: ['x'] })).rejects.toMatchObject(limited);
  });

  it('is retried when GitHub allows it after a secondary rate limit', async () => {
    const message = 'You have exceeded a secondary rate limit.';
    const headers = { 'retry-after': '90' };
    vi.stubGlobal('fetch', async () => Response.json({ message }, { status: 403, headers }));
    await expect(perform(addLabels, { ...issue, labels: ['x'] })).rejects.toMatchObject({ retryAfterMs: 90_000 });
  });

  it('that is forbidden is not retried', async () => {
    const message = 'Resource not accessible by integration';
    vi.stubGlobal('fetch', async () => Response.json({ message }, { status: 403 }));
    const refused = { code: 'TARGET_REFUSED', retryable: false };
    await expect(perform(addLabels, { ...issue, labels: ['x'] })).rejects.toMatchObject(refused);
  });
});

it('a status context is case-insensitive in its target, its key and its read', async () => {
  const named = (context: string) => setStatus.parse({ ...commit, context, state: 'success' });
  expect(setStatus.propose(named('CI/Build'), 'acme')).toMatchObject({
    target: setStatus.propose(named('ci/build'), 'acme').target,
    key: setStatus.propose(named('ci/build'), 'acme').key,
  });
  await perform(setStatus, { ...commit, context: 'CI/Build', state: 'pending' });
  const { reversal } = await perform(setStatus, { ...commit, context: 'ci/build', state: 'success' });
  expect(reversal).toMatchObject({ tool: 'github.status.set', input: { state: 'pending' } });
});

it('a comment that was changed does not match what its undo expects', async () => {
  const { reversal } = await perform(createComment, { ...issue, body: 'first' });
  if (!('tool' in reversal)) throw new Error(reversal.irreversible);
  const change = async () => Response.json({ id: 1, body: 'changed' });
  vi.stubGlobal('fetch', change);
  expect(await readBefore(deleteComment, reversal.input)).not.toEqual(reversal.expects);
});

it('deleting a comment that never existed is refused', async () => {
  const never = { owner: 'octo-org', repo: 'payments', commentId: 99 };
  expect(await readBefore(deleteComment, never)).toEqual({ comment: null });
  await expect(perform(deleteComment, never)).rejects.toMatchObject({ code: 'TARGET_REFUSED', retryable: false });
  expect(outside.callsOf('DELETE github')).toEqual([]);
});

it('the first status of a context cannot be undone; a later one is replaced by the previous one', async () => {
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
