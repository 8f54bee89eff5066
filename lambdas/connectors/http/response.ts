import * as z from 'zod';
import { tryParseJson } from '../../entry/parse-json.ts';
import { redactSecrets } from '../exchange.ts';
import { errorForStatus, FIRST_CLIENT_ERROR, FIRST_REDIRECT, OutcomeUnknown, TargetRefused } from '../target-errors.ts';
import type { ReceivedResponse } from './send.ts';

/** These ask the client to repeat the same request elsewhere, so nothing was done. Other redirects may follow a write. */
const REPEAT_ELSEWHERE = [307, 308];

/** A step stores 64 KiB. A longer body is shortened; JSON needs up to six bytes per character. */
const OUTPUT_BODY_MAX_BYTES = 56 * 1024;
const SHORTENED_TO_CHARACTERS = 8_000;
const OUTPUT_HEADERS = ['content-type', 'etag', 'last-modified', 'location', 'retry-after', 'x-request-id'];
const OUTPUT_HEADER_MAX_CHARACTERS = 500;

export const HttpOutput = z.lazy(() =>
  z.strictObject({
    status: z.int(),
    headers: z.record(z.string(), z.string()).describe(OUTPUT_HEADERS.join(', ')),
    body: z.unknown().describe('parsed if it is JSON, otherwise text'),
    truncated: z.literal(true).optional().describe('the body is the shortened text of a response that is too long'),
  }),
);

/** Returns if the response is a success. Otherwise the error says whether the target can have acted, without quoting it. */
export function assertSuccess(
  host: string,
  { status, headers }: ReceivedResponse,
  { method, expected }: { method: string; expected?: number | number[] },
): void {
  const isExpected = expected === undefined ? status < FIRST_REDIRECT : [expected].flat().includes(status);
  if (isExpected) return;
  if (status >= FIRST_CLIENT_ERROR) throw errorForStatus(host, { status, header: (name) => headers[name] });
  if (status >= FIRST_REDIRECT) {
    const message = `${host} redirected (${status}); redirects are not followed. Use the new address, or add ${status} to expectStatus`;
    if (method === 'GET' || method === 'HEAD' || REPEAT_ELSEWHERE.includes(status)) {
      throw new TargetRefused(message, { retryable: false });
    }
    throw new OutcomeUnknown(message);
  }
  throw new OutcomeUnknown(`${host} returned status ${status}, which expectStatus does not contain`);
}

/** Removes the credential's headers, which the target may have echoed. */
export function redactResponse(response: ReceivedResponse, secretHeaders: Record<string, string>): ReceivedResponse {
  const redacted = (text: string) => redactSecrets(text, Object.values(secretHeaders));
  const headers = Object.fromEntries(Object.entries(response.headers).map(([name, value]) => [name, redacted(value)]));
  return { ...response, headers, text: redacted(response.text) };
}

export function outputOf(host: string, { status, headers: received, text, truncated }: ReceivedResponse) {
  const headers = Object.fromEntries(
    OUTPUT_HEADERS.flatMap((name) =>
      received[name] ? [[name, received[name].slice(0, OUTPUT_HEADER_MAX_CHARACTERS)]] : [],
    ),
  );
  const isJson = /^application\/([a-z0-9.-]+\+)?json\b/i.test(received['content-type'] ?? '');
  const body = isJson && !truncated && text !== '' ? parseBody(host, text) : text.toWellFormed();
  const fits = !truncated && Buffer.byteLength(JSON.stringify(body)) <= OUTPUT_BODY_MAX_BYTES;
  if (fits) return { status, headers, body };
  return { status, headers, body: text.slice(0, SHORTENED_TO_CHARACTERS).toWellFormed(), truncated: true };
}

function parseBody(host: string, text: string): unknown {
  const value = tryParseJson(text);
  if (value !== undefined) return value;
  throw new OutcomeUnknown(`${host} sent JSON that is malformed or nested too deep`);
}
