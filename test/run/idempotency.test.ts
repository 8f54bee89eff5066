import { expect, it } from 'vitest';
import { deliveryKey, IDEMPOTENCY_RETENTION_MS } from '../../lambdas/run/idempotency.ts';

const DAY_MS = 24 * 3_600_000;

it.each([
  [deliveryKey.github({ deliveryId: 'd-1' }), 'github:d-1'],
  [deliveryKey.githubBurst({ event: 'pull_request.opened', contentHash: 'ab' }), 'github:burst:pull_request.opened:ab'],
  [deliveryKey.githubBody({ bodyHash: 'ab' }), 'github:body:ab'],
  [deliveryKey.forAutomation({ key: 'github:d-1', automation: 'label-new' }), 'github:d-1:automation:label-new'],
  [
    deliveryKey.servicenow({ instance: 'acme', table: 'incident', sysId: 'ab', modCount: 3 }),
    'servicenow:acme:incident:ab:3',
  ],
])('a delivery is named %s', (key, expected) => {
  expect(key).toBe(expected);
});

it('the record of a delivery is stored longer than its sender can repeat it', () => {
  // GitHub Enterprise Server redelivers for 7 days; a completed record remains for at least 24 hours (002 4.3).
  expect(IDEMPOTENCY_RETENTION_MS.github).toBe(8 * DAY_MS);
  expect(IDEMPOTENCY_RETENTION_MS.servicenow).toBe(24 * 60 * 60 * 1000);
});
