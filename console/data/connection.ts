import { useSyncExternalStore } from 'react';
import { serverNow } from './server-clock.ts';

/** Since when the API has not responded, in milliseconds; undefined while it responds. */
let offlineSince: number | undefined;
const listeners = new Set<() => void>();

function change(since: number | undefined): void {
  offlineSince = since;
  for (const listener of listeners) listener();
}

export function hasResponded(): void {
  if (offlineSince !== undefined) change(undefined);
}

export function hasNotResponded(): void {
  if (offlineSince === undefined) change(serverNow());
}

// A browser without a network sends nothing, so no request would fail.
addEventListener('offline', hasNotResponded);

export const useOfflineSince = (): number | undefined =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => offlineSince,
  );
