import type { QueryClient } from '@tanstack/react-query';
import type { RequestFor } from '../../client/api-client.ts';
import { type FeedSocketConstructor, LiveFeed } from '../../client/live-feed.ts';
import { call, type ReadRoute, useApi } from './api.ts';

/** For what is not a commit, e.g. the heartbeat of an agent; commits arrive at once. */
const POLL_MS = 10_000;
/** Commits often come in groups. */
const GROUP_MS = 150;

/** What a page shows live: everything of the tenant, or one run. */
export type Topic = 'tenant' | { run: string };

interface LiveOptions {
  topic: Topic;
  enabled?: boolean;
  /** Nothing changes any more. */
  ended?: boolean;
}

/**
 * The response of a GET route, which stays current. Commits are the truth: an event of the live feed only makes the query
 * read again.
 */
export function useLive<Key extends ReadRoute>(
  key: Key,
  request: RequestFor<Key>,
  { enabled = true, ended = false }: LiveOptions,
) {
  return useApi(key, request, { every: ended ? false : POLL_MS, enabled, isLive: !ended });
}

/** Reads live queries again after every commit of the tenant; every 2 s where the feed does not work. */
export function followCommits(queries: QueryClient): () => void {
  const feed = new LiveFeed({ api: { call }, WebSocket: WebSocket as unknown as FeedSocketConstructor });
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isMissed = false;
  const read = () => {
    timer = undefined;
    isMissed = document.hidden;
    if (!isMissed) queries.invalidateQueries({ predicate: ({ meta }) => meta?.isLive === true });
  };
  const soon = () => {
    timer ??= setTimeout(read, GROUP_MS);
  };
  const onVisible = () => {
    if (isMissed && !document.hidden) soon();
  };
  document.addEventListener('visibilitychange', onVisible);
  const followed = feed.everything({ onCommit: soon, onStale: soon });
  return () => {
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', onVisible);
    followed.close();
    feed.close();
  };
}
