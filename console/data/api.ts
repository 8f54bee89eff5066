import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query';
import {
  ApiClient,
  ApiError,
  type Arguments,
  NoResponse,
  type RequestFor,
  type ResponseFrom,
  type RouteKey,
} from '../../client/api-client.ts';
import { credentials, renewSession } from '../sign-in/session.ts';
import { hasNotResponded, hasResponded } from './connection.ts';
import { learnServerTime } from './server-clock.ts';

const client = new ApiClient(
  '',
  async () => credentials(),
  (headers, sentMs) => {
    learnServerTime(headers.get('date'), sentMs, Date.now());
    hasResponded();
  },
);

/** Calls the API as the signed-in person. A refused token is renewed once. */
export function call<Key extends RouteKey>(key: Key, ...request: Arguments<Key>): Promise<ResponseFrom<Key>> {
  return withRenewal(() => client.call(key, ...request));
}

/** The bytes of a file of the API. */
export function download<Key extends RouteKey>(key: Key, request: RequestFor<Key>): Promise<Uint8Array> {
  return withRenewal(() => client.download(key, request));
}

async function withRenewal<Result>(send: () => Promise<Result>): Promise<Result> {
  try {
    return await send();
  } catch (error) {
    if (error instanceof NoResponse) hasNotResponded();
    if (!(error instanceof ApiError && error.status === 401) || !(await renewSession())) throw error;
    return send();
  }
}

export type ReadRoute = RouteKey & `GET ${string}`;

interface QueryOptions {
  /** Milliseconds between two requests, while the page is visible. */
  every?: number | false;
  enabled?: boolean;
  /** Read again after commits. */
  isLive?: boolean;
}

/** The response of a GET route, cached by route and request. */
export function useApi<Key extends ReadRoute>(
  key: Key,
  request: RequestFor<Key>,
  { every = false, enabled = true, isLive = false }: QueryOptions = {},
): UseQueryResult<ResponseFrom<Key>> {
  return useQuery<ResponseFrom<Key>>({
    queryKey: [key, request],
    queryFn: () => call(key, ...([request] as Arguments<Key>)),
    refetchInterval: every,
    enabled,
    meta: { isLive },
    // Rows stay while the next page or filter loads.
    placeholderData: keepPreviousData as never,
  });
}

/** What went wrong and what to do, for people. */
export function problemText(error: unknown): string {
  if (error instanceof ApiError) {
    if (error.message !== '') return sentence(error.message);
    return `The API responded with ${error.status}. Try again in a moment.`;
  }
  if (error instanceof NoResponse) return 'The API does not respond. Check your connection; the page tries again.';
  return error instanceof Error ? sentence(error.message) : 'Something went wrong. Reload the page.';
}

export const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.status === 404;

/** With a capital letter and a full stop. */
export const sentence = (text: string): string => {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
};
