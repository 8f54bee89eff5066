import { describe, expect, it } from 'vitest';
import { hasExpired, IN_PROCESS_LEASE, LEASE_DURATION_MS, newLease, QUARANTINE_MS } from '../../lambdas/run/lease.ts';
import { backoffMs, DEFAULT_ATTEMPTS } from '../../lambdas/run/retry-policy.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';

describe('the backoff', () => {
  it.each([
    [1, 5_000],
    [2, 30_000],
    [3, 120_000],
    [4, 600_000],
    [5, 600_000],
    [20, 600_000],
  ])('after attempt %i lies between nothing and %i ms', (attempt, delayMs) => {
    expect(backoffMs(attempt, 0)).toBe(0);
    expect(backoffMs(attempt, 0.5)).toBe(delayMs / 2);
    expect(backoffMs(attempt, 0.999_999_999)).toBe(delayMs);
  });

  it('is never shorter than the Retry-After of the target', () => {
    expect(backoffMs(1, 0, 90_000)).toBe(90_000);
    expect(backoffMs(4, 0.5, 90_000)).toBe(300_000);
  });

  it('uses the backoff of a workflow that sets its own', () => {
    expect(backoffMs(1, 0.5, 0, [1_000, 10_000])).toBe(500);
    expect(backoffMs(7, 0.5, 0, [1_000, 10_000])).toBe(5_000);
  });

  it('has a wait between every two of the default attempts', () => {
    expect(DEFAULT_ATTEMPTS).toBe(5);
  });
});

describe('a lease', () => {
  it('outlives the quarantine of an unknown outcome, so that a later probe sees every effect of its holder', () => {
    expect(LEASE_DURATION_MS).toBeGreaterThan(QUARANTINE_MS);
  });

  it('expires at its time, not before', () => {
    const lease = newLease('worker', STORY_BEGINS_AT, IN_PROCESS_LEASE);
    expect(lease.expiresAt).toBe('2026-01-02T03:05:05.000Z');
    expect(hasExpired(lease, '2026-01-02T03:05:04.999Z')).toBe(false);
    expect(hasExpired(lease, '2026-01-02T03:05:05.000Z')).toBe(true);
  });
});
