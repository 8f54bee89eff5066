import type { SimAnswer, SimCall } from './exchange.ts';
import type { SimulatorStore } from './store.ts';

export const SYSTEM_NAMES = ['servicenow', 'github', 'slack', 'pagerduty', 'vault'] as const;
export type SystemName = (typeof SYSTEM_NAMES)[number];

/**
 * What real systems do within their contract that nobody expects, and that a fault of kind `surprise` switches on for the
 * calls it befalls:
 * - ServiceNow: an ACL keeps rows out of a list but not out of its count; a clause of a query (its last) is ignored;
 *   fields are dropped from a write, or left out of an answer, without a word.
 * - GitHub: a secondary rate limit that does not say for how long; people who are not assigned, without a word; pages that
 *   hold less than was asked for.
 * - Slack: metadata without its payload, though all of it was asked for (the app lacks a scope); lists that are rate
 *   limited; a text that is cut; `ok: true` with warnings.
 */
export const SURPRISES = {
  servicenow: ['rows_hidden', 'clause_ignored', 'fields_dropped', 'fields_hidden'],
  github: ['secondary_limit', 'assignees_ignored', 'short_pages'],
  slack: ['payload_hidden', 'lists_limited', 'text_cut', 'warnings'],
} as const;
export type Surprise = (typeof SURPRISES)[keyof typeof SURPRISES][number];

/** What a simulated system is given. Time is the host's, so that tokens and leases expire when the clock is advanced. */
export interface SystemContext {
  readonly store: SimulatorStore;
  readonly now: () => number;
  /** Where this system is mounted, for the links in its answers. */
  readonly baseUrl: () => string;
}

/**
 * A simulated system answers synchronously: its effect, the recorded call and the answer's status are one transaction,
 * so that no crash leaves one without the others.
 */
export interface SimulatedSystem {
  answer(call: SimCall, surprise?: Surprise): SimAnswer;
  /** How this system words a refusal that a fault ordered; `retry-after` is added by the caller. */
  refuse(status: number, retryAfterSeconds: number | undefined): SimAnswer;
}

export type Handler = (call: SimCall, param: (name: string) => string) => SimAnswer;

/**
 * Routes like `GET /repos/:owner/:repo/issues/:number`; a last segment `*rest` takes all that follows.
 * Returns undefined when no route fits: each system has its own way to say so.
 */
export function router(routes: Record<string, Handler>): (call: SimCall) => SimAnswer | undefined {
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
