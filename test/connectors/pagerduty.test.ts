import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { sendEvent } from '../../lambdas/connectors/pagerduty/events.ts';
import { FakeClock, STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { FakeTargets } from '../fakes/targets/fake-targets.ts';

const trigger = { action: 'trigger', summary: 'Refunds fail', source: 'payments', severity: 'critical' };

let outside: FakeTargets;
beforeEach(() => {
  outside = new FakeTargets(new FakeClock());
  vi.stubGlobal('fetch', outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const send = (input: unknown) =>
  sendEvent.perform(sendEvent.parse(input), {
    access: outside.access().pagerduty,
    mark: 'countersign:ours',
    openSince: STORY_BEGINS_AT,
  });

it('an alert with the key of the write is resolved by its undo', async () => {
  const { reversal } = await send(trigger);
  expect(outside.calls.at(-1)?.body).toEqual({
    routing_key: 'x',
    event_action: 'trigger',
    dedup_key: 'countersign:ours',
    payload: { summary: 'Refunds fail', source: 'payments', severity: 'critical' },
  });
  expect(reversal).toEqual({
    tool: 'pagerduty.event',
    input: { action: 'resolve', dedupKey: 'countersign:ours' },
  });
});

it('the response of PagerDuty is stored without the key of the alert, which may be a text', async () => {
  expect((await send({ ...trigger, dedupKey: 'refunds' })).response).toEqual({ status: 202 });
});

it('an alert that may have been open before is not resolved by an undo', async () => {
  expect((await send({ ...trigger, dedupKey: 'refunds' })).reversal).toHaveProperty('irreversible');
});

it('acknowledging and resolving an alert cannot be undone', async () => {
  await send({ ...trigger, dedupKey: 'refunds' });
  const acknowledged = await send({ action: 'acknowledge', dedupKey: 'refunds' });
  expect(outside.alerts).toEqual([{ dedup_key: 'refunds', status: 'acknowledged' }]);
  const resolved = await send({ action: 'resolve', dedupKey: 'refunds' });
  expect(outside.alerts).toEqual([{ dedup_key: 'refunds', status: 'resolved' }]);
  for (const { reversal } of [acknowledged, resolved]) expect(reversal).toHaveProperty('irreversible');
});
