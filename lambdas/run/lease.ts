import type { Lease } from './step.ts';

/** Each executor has its own lease times. */
export interface LeaseTimes {
  durationMs: number;
  /** How often the executor renews the lease of long work. */
  renewalMs: number;
  /** How long after its intent a request may still reach the target: an unknown outcome is not probed before. */
  quarantineMs: number;
}

/**
 * The lease of a step that the worker performs itself ends after everything that the worker can still do:
 *
 *   claim+intent                                   lease ends
 *   |--- the function runs, at most 30 s ---|        |
 *                      its last request takes 10 s   |
 *                                       clocks differ 10 s
 *
 * AWS may suspend a function and continue it later than that. Therefore the worker checks its lease before each request,
 * and sends nothing after the first 30 s (`mayStillSend`).
 *
 * When a lease has ended, a probe at the target sees the effect of the last request: the quarantine is part of the lease.
 */
export const WORKER_TIMEOUT_MS = 30_000;
/** A request reaches the target within this time or never. */
const REQUEST_FLIGHT_MS = 10_000;
export const CLOCK_SKEW_MS = 10_000;
export const QUARANTINE_MS = WORKER_TIMEOUT_MS + REQUEST_FLIGHT_MS + CLOCK_SKEW_MS;
export const LEASE_DURATION_MS = 60_000;
/** Three renewals per lease: one lost renewal does no harm. */
export const LEASE_RENEWAL_MS = LEASE_DURATION_MS / 3;

export const IN_PROCESS_LEASE: LeaseTimes = {
  durationMs: LEASE_DURATION_MS,
  renewalMs: LEASE_RENEWAL_MS,
  quarantineMs: QUARANTINE_MS,
};

/**
 * A step that an agent performs has a short lease until the agent acknowledges it, and then one that the agent renews:
 *
 *   claim    offered       the agent syncs        it acknowledges      it renews every 10 s
 *   |-- 2 s --|---- at most 5 s ----|---- at most 5 s ----|------ 30 s ------|
 *
 * An agent without a socket syncs every 5 s. Without an acknowledgement the assignment is withdrawn, and another agent
 * gets the next one. An agent that does not renew is lost within 30 s.
 */
const OFFERED_WITHIN_MS = 2_000;
const SYNCED_WITHIN_MS = 5_000;
const ACKNOWLEDGED_WITHIN_MS = 5_000;
export const AGENT_LEASE: LeaseTimes = {
  durationMs: OFFERED_WITHIN_MS + SYNCED_WITHIN_MS + ACKNOWLEDGED_WITHIN_MS,
  renewalMs: 10_000,
  quarantineMs: 30_000,
};
/** From the acknowledgement, and from each renewal. */
export const AGENT_HOLDS_MS = 30_000;

/** Agents perform these; the worker performs all others itself, and starts sessions. */
const AGENT_TOOL = /^agent\.(command|rollback)$/;
export const isAgentTool = (tool: string): boolean => AGENT_TOOL.test(tool);

/** The lease times of the executor of a tool. */
export const leaseTimesOf = (tool: string): LeaseTimes => (isAgentTool(tool) ? AGENT_LEASE : IN_PROCESS_LEASE);

export function newLease(owner: string, at: string, { durationMs }: LeaseTimes): Lease {
  return { owner, expiresAt: later(at, durationMs) };
}

/** True if a request sent now arrives, by any clock, before another worker may claim the step. */
export function mayStillSend({ expiresAt }: Lease, nowMs: number): boolean {
  return Date.parse(expiresAt) - nowMs >= LEASE_DURATION_MS - WORKER_TIMEOUT_MS;
}

/** True if a request sent now arrives, by any clock, before this time. */
export const arrivesBefore = (at: string, nowMs: number): boolean =>
  Date.parse(at) - nowMs >= REQUEST_FLIGHT_MS + CLOCK_SKEW_MS;

export function hasExpired(lease: Lease, now: string): boolean {
  return lease.expiresAt <= now;
}

export function later(at: string, byMs: number): string {
  return new Date(Date.parse(at) + byMs).toISOString();
}

export function earlier(a: string, b: string): string {
  return a < b ? a : b;
}
