import { afterEach, beforeEach, expect, test } from 'vitest';
import { openWorld, type World } from './world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const routing_key = 'k'.repeat(32);
const payload = { summary: 'Approval overdue', source: 'countersign', severity: 'critical' };
const enqueue = (event: Record<string, unknown>) =>
  world.ask('POST', '/pagerduty/v2/enqueue', { routing_key, ...event });
const alerts = async () => (await world.ask('GET', '/state')).body.alerts;

test('triggers with the same key merge while the alert is open; after a resolve a new one opens', async () => {
  const trigger = { event_action: 'trigger', dedup_key: 'run-1:gate', payload };
  const accepted = await enqueue(trigger);
  expect([accepted.status, accepted.body]).toEqual([
    202,
    { status: 'success', message: 'Event processed', dedup_key: 'run-1:gate' },
  ]);
  await enqueue(trigger);
  await enqueue({ event_action: 'acknowledge', dedup_key: 'run-1:gate' });
  expect(await alerts()).toMatchObject([{ status: 'acknowledged', triggers: 2 }]);
  await enqueue({ event_action: 'resolve', dedup_key: 'run-1:gate' });
  await enqueue({ event_action: 'acknowledge', dedup_key: 'run-1:gate' });
  expect(await alerts()).toMatchObject([{ status: 'resolved' }]);
  await enqueue(trigger);
  expect(await alerts()).toMatchObject([{ status: 'triggered', triggers: 1 }, { status: 'resolved' }]);
});

test('another routing key cannot resolve the alert', async () => {
  await enqueue({ event_action: 'trigger', dedup_key: 'a', payload });
  expect((await enqueue({ routing_key: 'x'.repeat(32), event_action: 'resolve', dedup_key: 'a' })).status).toBe(202);
  expect(await alerts()).toMatchObject([{ status: 'triggered' }]);
});

test('an invalid event is refused with 400 and the reason', async () => {
  const short = await enqueue({ routing_key: 'short', event_action: 'trigger', payload });
  expect(short.status).toBe(400);
  expect(short.body).toEqual({
    status: 'invalid event',
    message: 'Event object is invalid',
    errors: ["Length of 'routing_key' is incorrect (should be 32 characters)"],
  });
  expect((await enqueue({ event_action: 'trigger', payload: { ...payload, severity: 'bad' } })).status).toBe(400);
  expect((await enqueue({ event_action: 'shout' })).status).toBe(400);
  expect((await world.ask('POST', '/pagerduty/v2/enqueue', '{')).status).toBe(400);
});

test('the record of calls does not show routing keys', async () => {
  await enqueue({ event_action: 'resolve', dedup_key: 'a' });
  expect(await world.calls()).toMatchObject([{ body: { event_action: 'resolve', routing_key: '[redacted]' } }]);
});
