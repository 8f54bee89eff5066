import type { RequestFor } from '../../client/api-client.ts';
import { type ReadRoute, useApi } from './api.ts';

/** How often pages ask for news while they are visible. */
const POLL_MS = 2_000;
/** What every page asks for, e.g. the number in the header. */
const BACKGROUND_POLL_MS = 10_000;

/** What a page shows live: everything of the tenant, or one run. */
export type Topic = 'tenant' | { run: string };

interface LiveOptions {
  topic: Topic;
  enabled?: boolean;
  /** Nothing changes any more. */
  ended?: boolean;
  background?: boolean;
}

/**
 * The response of a GET route, which stays current. Commits are the truth: a hint that something has changed only makes
 * the query read again. Today a timer gives the hints; the live feed will give them here, and pages stay as they are.
 */
export function useLive<Key extends ReadRoute>(
  key: Key,
  request: RequestFor<Key>,
  { enabled = true, ended = false, background = false }: LiveOptions,
) {
  return useApi(key, request, { every: ended ? false : background ? BACKGROUND_POLL_MS : POLL_MS, enabled });
}
