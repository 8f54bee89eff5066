import { afterEach, beforeEach, expect, test } from 'vitest';
import { BEARER, openWorld, type World } from './world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const ISSUE = '/repos/octo-org/payments/issues/1';
const github = (method: string, path: string, body?: unknown) => world.ask(method, `/github${path}`, body, BEARER);
const names = (labels: { name: string }[]) => labels.map(({ name }) => name);

test('adding an existing label changes nothing; removing a missing label is 404', async () => {
  const first = await github('POST', `${ISSUE}/labels`, { labels: ['triage'] });
  expect([first.status, names(first.body)]).toEqual([200, ['bug', 'triage']]);
  world.nowMs += 60_000;
  expect(names((await github('POST', `${ISSUE}/labels`, ['Triage'])).body)).toEqual(['bug', 'triage']);
  expect((await github('GET', ISSUE)).body.updated_at).toBe('2026-01-02T03:04:05Z');
  expect(names((await github('DELETE', `${ISSUE}/labels/triage`)).body)).toEqual(['bug']);
  const absent = await github('DELETE', `${ISSUE}/labels/triage`);
  expect([absent.status, absent.body.message]).toEqual([404, 'Label does not exist']);
  expect((await github('POST', `${ISSUE}/labels`, {})).status).toBe(422);
});

test('a label with a slash in its name is one label', async () => {
  await github('POST', `${ISSUE}/labels`, { labels: ['area/api'] });
  expect(names((await github('DELETE', `${ISSUE}/labels/area%2Fapi`)).body)).toEqual(['bug']);
});

test('repositories and issues exist as soon as they are named', async () => {
  const issue = await github('GET', '/repos/somebody/something/issues/4711');
  expect(issue.body).toMatchObject({ number: 4711, state: 'open', labels: [], assignees: [] });
});

test('assignees are added up to ten and removed', async () => {
  const many = Array.from({ length: 12 }, (_, index) => `dev${index}`);
  const added = await github('POST', `${ISSUE}/assignees`, { assignees: many });
  expect([added.status, added.body.assignees.length]).toEqual([201, 10]);
  const removed = await github('DELETE', `${ISSUE}/assignees`, { assignees: many.slice(1) });
  expect(removed.body.assignees.map(({ login }: { login: string }) => login)).toEqual(['dev0']);
});

test('comments are posted, listed, edited and deleted', async () => {
  const posted = await github('POST', `${ISSUE}/comments`, { body: 'hello' });
  expect(posted.status).toBe(201);
  const path = `/repos/octo-org/payments/issues/comments/${posted.body.id}`;
  expect((await github('PATCH', path, { body: 'edited' })).body.body).toBe('edited');
  expect((await github('GET', `${ISSUE}/comments`)).body).toHaveLength(1);
  expect((await github('DELETE', path)).status).toBe(204);
  expect((await github('DELETE', path)).status).toBe(404);
});

test('commit statuses are listed newest first', async () => {
  const path = '/repos/octo-org/payments/statuses/abc123';
  await github('POST', path, { state: 'pending', context: 'ci' });
  expect((await github('POST', path, { state: 'success', context: 'ci' })).status).toBe(201);
  expect((await github('POST', path, { state: 'fine' })).status).toBe(422);
  expect((await github('GET', path)).body.map(({ state }: { state: string }) => state)).toEqual(['success', 'pending']);
});

test('every response has the rate limit headers, including refusals', async () => {
  for (const headers of [BEARER, undefined]) {
    const answer = await world.ask('GET', `/github${ISSUE}`, undefined, headers);
    for (const name of ['limit', 'remaining', 'used', 'reset', 'resource'])
      expect(answer.headers.get(`x-ratelimit-${name}`)).toBeTruthy();
  }
});

test('a missing or invalid token is 401; an installation token expires after an hour', async () => {
  const ask = (authorization?: string) =>
    world.ask('GET', `/github${ISSUE}`, undefined, authorization ? { authorization } : {});
  expect((await ask()).body.message).toBe('Requires authentication');
  expect(await ask('Bearer stolen')).toMatchObject({
    status: 401,
    body: { message: 'Bad credentials', status: '401' },
  });
  const granted = await world.ask('POST', '/github/app/installations/7/access_tokens', undefined, {
    authorization: 'Bearer a.b.c',
  });
  expect(granted.status).toBe(201);
  expect((await ask(`token ${granted.body.token}`)).status).toBe(200);
  world.nowMs += 3_600_000;
  expect((await ask(`token ${granted.body.token}`)).status).toBe(401);
});
