import type { FeedSocketConstructor } from '../../client/live-feed.ts';

/** Node.js 20 has no WebSocket of its own. */
export async function openSocket(): Promise<FeedSocketConstructor> {
  const { WebSocket } = await import('ws');
  return WebSocket as unknown as FeedSocketConstructor;
}
