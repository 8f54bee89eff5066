import { type HttpEvent, Problem } from '../../entry/http.ts';

/** In this order: the first header that is present counts. */
const HEADERS = ['idempotency-key', 'x-idempotency-key', 'x-request-id'];
const REQUEST_ID = /^[\x21-\x7e]{1,200}$/;

/** The caller's own id of the request; undefined if the caller sent none, and then nothing is recognised as repeated. */
export function requestIdOf(headers: HttpEvent['headers'] = {}): string | undefined {
  const header = HEADERS.find((name) => headers[name] !== undefined);
  if (header === undefined) return undefined;
  const id = headers[header]?.trim() ?? '';
  if (REQUEST_ID.test(id)) return id;
  throw new Problem(400, 'BAD_REQUEST', `the header ${header} must have 1 to 200 visible ASCII characters, no spaces`);
}
