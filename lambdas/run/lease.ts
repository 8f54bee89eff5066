import type { Lease } from './step.ts';

/**
 * A lease outlives everything its holder can still do:
 *
 *   claim+intent                                   lease ends
 *   |--- the function runs, at most 30 s ---|        |
 *                      its last request flies 10 s   |
 *                                       clocks differ 10 s
 *
 * A function may stand still and go on later than that. So its holder looks at the lease right before each request, and
 * sends nothing once the first 30 s are over (`mayStillSend`).
 *
 * So when a lease has run out, a probe at the target sees whatever the dead holder's request did:
 * the quarantine of an unknown outcome is contained in the lease.
 */
export const WORKER_TIMEOUT_MS = 30_000;
/** A request that was sent lands within this time or never. */
const REQUEST_FLIGHT_MS = 10_000;
const CLOCK_SKEW_MS = 10_000;
export const QUARANTINE_MS = WORKER_TIMEOUT_MS + REQUEST_FLIGHT_MS + CLOCK_SKEW_MS;
export const LEASE_DURATION_MS = 60_000;
/** Long work renews well before its lease ends: one lost renewal does no harm. */
export const LEASE_RENEWAL_MS = LEASE_DURATION_MS / 3;

export function newLease(owner: string, at: string): Lease {
  return { owner, expiresAt: later(at, LEASE_DURATION_MS) };
}

/** Whether a request sent now has landed, by anybody's clock, before somebody else may take the lease over. */
export function mayStillSend({ expiresAt }: Lease, nowMs: number): boolean {
  return Date.parse(expiresAt) - nowMs >= LEASE_DURATION_MS - WORKER_TIMEOUT_MS;
}

export function hasExpired(lease: Lease, now: string): boolean {
  return lease.expiresAt <= now;
}

export function later(at: string, byMs: number): string {
  return new Date(Date.parse(at) + byMs).toISOString();
}

export function earlier(a: string, b: string): string {
  return a < b ? a : b;
}
