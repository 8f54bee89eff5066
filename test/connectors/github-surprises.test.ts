import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Operation, WriteContext } from '../../lambdas/connectors/connector.ts';
import { addAssignees } from '../../lambdas/connectors/github/assignees.ts';
import { createComment } from '../../lambdas/connectors/github/comments.ts';
import { addLabels } from '../../lambdas/connectors/github/labels.ts';
import { setStatus } from '../../lambdas/connectors/github/status.ts';
import { later } from '../../lambdas/run/lease.ts';
import { openWorld, type World } from '../local/simulators/world.ts';

const ISSUE = { owner: 'octo-org', repo: 'payments', number: 7 };
const COMMIT = { owner: 'octo-org', repo: 'payments', sha: 'a'.repeat(40) };
const HOUR_MS = 3_600_000;

let world: World;
let performance: WriteContext;
beforeEach(async () => {
  world = await openWorld();
  // With a slash at the end, as people write addresses.
  const access = { baseUrl: `${world.url}/_sim/github/`, instance: 'acme', credential: { token: 'local-token' } };
  const openSince = later(new Date(world.nowMs).toISOString(), -HOUR_MS);
  performance = { access, mark: 'countersign:0123456789abcdef0123', openSince };
});
afterEach(() => world.close());

const surprise = (kind: string, method: string) =>
  world.ask('POST', '/faults', { system: 'github', kind: 'surprise', surprise: kind, method, times: 20 });
const perform = async (operation: Operation, input: object, differing: Partial<WriteContext> = {}) =>
  operation.perform(operation.parse(input), { ...performance, ...differing });
const reads = async () => (await world.calls('?system=github&method=GET')).length;

it('a secondary rate limit without a duration is retried after a minute', async () => {
  await surprise('secondary_limit', 'POST');
  const limited = { code: 'TARGET_REFUSED', retryable: true, retryAfterMs: 60_000 };
  await expect(perform(addLabels, { ...ISSUE, labels: ['x'] })).rejects.toMatchObject(limited);
});

it('people whom GitHub silently did not assign are a refusal', async () => {
  await surprise('assignees_ignored', 'POST');
  const refused = { code: 'TARGET_REFUSED', retryable: false, message: expect.stringContaining('ignored ana') };
  await expect(perform(addAssignees, { ...ISSUE, assignees: ['ana'] })).rejects.toMatchObject(refused);
});

it('a comment is found after short pages, and is absent only after all pages were read', async () => {
  for (const body of ['one', 'two', 'three'])
    await perform(createComment, { ...ISSUE, body }, { mark: `other:${body}` });
  await surprise('short_pages', 'GET');
  const input = createComment.parse({ ...ISSUE, body: 'four' });
  expect(await createComment.probe?.(input, performance)).toBeUndefined();
  expect(await reads()).toBe(3);
  const { output } = await perform(createComment, input as object);
  expect(await createComment.probe?.(input, performance)).toMatchObject({ output, recovered: true });
});

it('more comments than are read leave the outcome unknown', async () => {
  for (let count = 0; count < 11; count += 1) {
    await perform(createComment, { ...ISSUE, body: `${count}` }, { mark: `other:${count}` });
  }
  await surprise('short_pages', 'GET');
  const probing = createComment.probe?.(createComment.parse({ ...ISSUE, body: 'x' }), performance);
  await expect(probing).rejects.toMatchObject({ code: 'TARGET_REFUSED', retryable: false });
  expect(await reads()).toBe(10);
});

it('the status of a context is found after short pages, in any letter case', async () => {
  for (const context of ['CI/Build', 'lint', 'deploy'])
    await perform(setStatus, { ...COMMIT, context, state: 'pending' });
  await surprise('short_pages', 'GET');
  const input = setStatus.parse({ ...COMMIT, context: 'ci/build', state: 'success' });
  expect(await setStatus.before?.(input, performance.access)).toMatchObject({ state: 'pending' });
});

it('an unknown fault of a simulator is refused by name', async () => {
  const { status, body } = await world.ask('POST', '/faults', {
    system: 'github',
    kind: 'surprise',
    surprise: 'rows_hidden',
  });
  expect(status).toBe(400);
  expect(body.error).toContain('secondary_limit');
});
