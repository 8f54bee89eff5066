import type { SimCall, SimResponse } from './exchange.ts';
import type { SimulatorStore } from './store.ts';

export const SYSTEM_NAMES = ['servicenow', 'github', 'slack', 'pagerduty', 'vault', 'sessions'] as const;
export type SystemName = (typeof SYSTEM_NAMES)[number];

/**
 * Unexpected behaviour of real systems that their contract allows. A fault of kind `surprise` enables it for a call.
 * - ServiceNow: an ACL hides rows of a list but not their count; the last clause of a query is ignored; fields are dropped
 *   from a write or from a response without an error.
 * - GitHub: a secondary rate limit without a time; people who are not assigned, without an error; pages that are shorter
 *   than requested.
 * - Slack: metadata without its payload, because the app lacks a scope; lists that are rate limited; a text that is cut;
 *   `ok: true` with warnings.
 * - Sessions: the session fails, is lost by its agent, ends without a completion, does nothing, completes twice, completes
 *   another run, works for long, completes after its deadline, or is rejected.
 */
export const SURPRISES = {
  servicenow: ['rows_hidden', 'clause_ignored', 'fields_dropped', 'fields_hidden'],
  github: ['secondary_limit', 'assignees_ignored', 'short_pages'],
  slack: ['payload_hidden', 'lists_limited', 'text_cut', 'warnings'],
  sessions: [
    'dies',
    'disappears',
    'ends_early',
    'silent',
    'completes_twice',
    'reports_another_run',
    'completes_late',
    'slow',
    'refuses',
  ],
} as const;
export type Surprise = (typeof SURPRISES)[keyof typeof SURPRISES][number];

/** The time is the host's clock, so that tokens and leases expire when the clock is advanced. */
export interface SystemContext {
  readonly store: SimulatorStore;
  readonly now: () => number;
  /** The URL of this system, for the links in its responses. */
  readonly baseUrl: () => string;
}

/**
 * A simulated system responds synchronously: its effect, the recorded call and the status of the response are one
 * transaction.
 */
export interface SimulatedSystem {
  answer(call: SimCall, surprise?: Surprise): SimResponse;
  /** The error of this system for the status of a fault. The caller adds `retry-after`. */
  refuse(status: number, retryAfterSeconds: number | undefined): SimResponse;
}

export type Handler = (call: SimCall, param: (name: string) => string) => SimResponse;

/**
 * Routes like `GET /repos/:owner/:repo/issues/:number`. A last segment `*rest` matches all segments that follow.
 * Returns undefined if no route matches: each system has its own error for this.
 */
export function router(routes: Record<string, Handler>): (call: SimCall) => SimResponse | undefined {
  const table = Object.entries(routes).map(([route, handler]) => {
    const [method = '', path = ''] = route.split(' ');
    return { method, pattern: path.split('/').filter(Boolean), handler };
  });
  return (call) => {
    for (const { method, pattern, handler } of table) {
      if (method !== call.method) continue;
      const params = match(pattern, call.segments);
      if (params) return handler(call, (name) => params.get(name) ?? '');
    }
    return undefined;
  };
}

function match(pattern: readonly string[], segments: readonly string[]): Map<string, string> | undefined {
  const params = new Map<string, string>();
  for (const [index, part] of pattern.entries()) {
    const segment = segments[index];
    if (segment === undefined) return undefined;
    if (part.startsWith('*')) return params.set(part.slice(1), segments.slice(index).join('/'));
    if (part.startsWith(':')) params.set(part.slice(1), segment);
    else if (part !== segment) return undefined;
  }
  return pattern.length === segments.length ? params : undefined;
}
