import { afterEach, beforeEach, expect, test } from 'vitest';
import { BASIC, BEARER, openWorld, type World } from './world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const COMMENTS = '/github/repos/octo-org/payments/issues/1/comments';
const comment = () => world.ask('POST', COMMENTS, { body: 'hello' }, BEARER);
const comments = async () => (await world.ask('GET', COMMENTS, undefined, BEARER)).body.length;
const order = (fault: Record<string, unknown>) => world.ask('POST', '/faults', fault);

test('a status fault refuses before any effect, with the error format of the system', async () => {
  expect(
    (await order({ system: 'github', method: 'post', path: '/comments', kind: 'status', status: 429 })).status,
  ).toBe(201);
  const refused = await comment();
  expect([refused.status, refused.headers.get('x-ratelimit-remaining')]).toEqual([429, '0']);
  expect(await comments()).toBe(0);
  expect((await comment()).status).toBe(201);
});

test('a ServiceNow 429 has the documented shape and headers', async () => {
  await order({ system: 'servicenow', kind: 'status', status: 429, retryAfterSeconds: 7 });
  const limited = await world.ask('GET', '/servicenow/api/now/table/incident', undefined, BASIC);
  expect(limited.body).toMatchObject({
    error: { message: 'Rate limit exceeded', detail: expect.any(String) },
    status: 'failure',
  });
  expect(limited.headers.get('retry-after')).toBe('7');
  expect(limited.headers.get('x-ratelimit-limit')).toBe('5000');
});

test('a fault can have its own body', async () => {
  await order({ system: 'slack', kind: 'status', status: 503, body: { maintenance: true } });
  expect((await world.ask('POST', '/slack/api/auth.test', {})).body).toEqual({ maintenance: true });
});

test('a call with a lost response has its effect once', async () => {
  await order({ system: 'github', method: 'POST', kind: 'lost_answer' });
  await expect(comment()).rejects.toThrow();
  expect(await comments()).toBe(1);
  const [lost] = await world.calls('?method=POST');
  expect(lost).toMatchObject({ status: 201, answer: 'lost', body: { body: 'hello' } });
});

test('a truncated response has the whole content-length, ends early, and its call has its effect', async () => {
  await order({ system: 'github', method: 'POST', kind: 'truncated_body' });
  const response = await fetch(`${world.url}/_sim${COMMENTS}`, {
    method: 'POST',
    headers: BEARER,
    body: '{"body":"hello"}',
  });
  expect(response.status).toBe(201);
  const announced = Number(response.headers.get('content-length'));
  let arrived = 0;
  const read = async () => {
    for await (const chunk of response.body ?? []) arrived += chunk.length;
  };
  await expect(read()).rejects.toThrow();
  expect(arrived).toBeGreaterThan(0);
  expect(arrived).toBeLessThan(announced);
  expect(await comments()).toBe(1);
  expect((await world.calls('?method=POST'))[0]).toMatchObject({ status: 201, answer: 'truncated' });
});

test('a delayed call waits, then has its effect and its response', async () => {
  await order({ system: 'github', method: 'POST', kind: 'delay', delayMs: 40 });
  const startedAt = performance.now();
  expect((await comment()).status).toBe(201);
  // Timers may fire a little early by this clock.
  expect(performance.now() - startedAt).toBeGreaterThan(38);
  expect(await comments()).toBe(1);
});

test('a delayed call continues when the faults are cleared', async () => {
  await order({ system: 'github', method: 'POST', kind: 'delay', delayMs: 600_000 });
  const answered = comment();
  while ((await world.ask('GET', '/faults')).body.faults[0].hits === 0);
  await world.ask('DELETE', '/faults');
  expect((await answered).status).toBe(201);
  expect(await comments()).toBe(1);
});

test('a call that is delayed when the simulators close has no effect', async () => {
  await order({ system: 'github', method: 'POST', kind: 'delay', delayMs: 600_000 });
  const refused = expect(comment()).rejects.toThrow();
  // The fault is taken when the call arrives, so its hit says that the call is waiting.
  while ((await world.ask('GET', '/faults')).body.faults[0].hits === 0);
  await world.close();
  await refused;
});

test('nth and times select the matching calls that fail', async () => {
  const { body: fault } = await order({
    system: 'github',
    method: 'POST',
    nth: 2,
    times: 2,
    kind: 'status',
    status: 500,
  });
  const statuses: number[] = [];
  for (let call = 0; call < 4; call++) statuses.push((await comment()).status);
  await comments();
  expect(statuses).toEqual([201, 500, 500, 201]);
  expect((await world.ask('GET', '/faults')).body.faults).toMatchObject([{ id: fault.id, hits: 2 }]);
});

test('cleared faults have no effect; a restart does not clear faults', async () => {
  await order({ system: 'github', kind: 'status', status: 500, times: 5 });
  world.reopen();
  expect((await comment()).status).toBe(500);
  expect((await world.ask('DELETE', '/faults')).status).toBe(204);
  expect((await comment()).status).toBe(201);
});

test('an invalid fault is refused with 400 and the reason', async () => {
  const wrong = await order({ system: 'github', kind: 'status' });
  expect(wrong.status).toBe(400);
  expect(wrong.body.error).toContain('at status');
  expect((await order({ system: 'jira', kind: 'lost_answer' })).body.error).toContain('at system');
  expect((await order({ system: 'github', kind: 'explode' })).body.error).toContain('at kind');
  expect((await order({ system: 'github', kind: 'lost_answer', tiems: 2 })).body.error).toContain('tiems');
  expect((await world.ask('POST', '/faults', '{')).status).toBe(400);
});
