import { tryParseJson } from '../../entry/parse-json.ts';
import { FIRST_REDIRECT, FIRST_REFUSAL, OutcomeUnknown, refusal, TargetRefused } from '../exchange.ts';
import { withoutSecrets } from '../without-secrets.ts';
import type { ReceivedAnswer } from './send.ts';

/** "Ask there, in the same way": what was asked here was not done. Other redirects may well follow the deed. */
const NOT_DONE_HERE = [307, 308];

/** What a body may take of the 64 KiB that a step keeps; a text that needs more (JSON: up to six bytes a character) is cut. */
const OUTPUT_BODY_MAX_BYTES = 56 * 1024;
const CUT_TO_CHARACTERS = 8_000;
const SHOWN_HEADERS = ['content-type', 'etag', 'last-modified', 'location', 'retry-after', 'x-request-id'];
const SHOWN_HEADER_MAX_CHARACTERS = 500;

/** The answer if it means success; otherwise what it means: certainly not done, or perhaps. Never quotes the target. */
export function judged(
  host: string,
  answer: ReceivedAnswer,
  { method, expected }: { method: string; expected?: number | number[] },
): ReceivedAnswer {
  const { status, headers } = answer;
  const isExpected = expected === undefined ? status < FIRST_REDIRECT : [expected].flat().includes(status);
  if (isExpected) return answer;
  if (status >= FIRST_REFUSAL) throw refusal(host, { status, header: (name) => headers[name] });
  if (status >= FIRST_REDIRECT) {
    const message = `${host} redirected (${status}), which is never followed; name the address it leads to, or expect ${status}`;
    if (method === 'GET' || method === 'HEAD' || NOT_DONE_HERE.includes(status)) {
      throw new TargetRefused(message, { retryable: false });
    }
    throw new OutcomeUnknown(message);
  }
  throw new OutcomeUnknown(`${host} answered ${status}, which was not expected`);
}

/** No header of the credential comes back with an answer. */
export function withoutSecretHeaders(answer: ReceivedAnswer, secretHeaders: Record<string, string>): ReceivedAnswer {
  const cleaned = (text: string) => withoutSecrets(text, Object.values(secretHeaders));
  const headers = Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name, cleaned(value)]));
  return { ...answer, headers, text: cleaned(answer.text) };
}

export function outputOf(host: string, { status, headers, text, cut }: ReceivedAnswer) {
  const shown = Object.fromEntries(
    SHOWN_HEADERS.flatMap((name) =>
      headers[name] ? [[name, headers[name].slice(0, SHOWN_HEADER_MAX_CHARACTERS)]] : [],
    ),
  );
  const isJson = /^application\/([a-z0-9.-]+\+)?json\b/i.test(headers['content-type'] ?? '');
  const body = isJson && !cut && text !== '' ? jsonIn(host, text) : text.toWellFormed();
  const fits = !cut && Buffer.byteLength(JSON.stringify(body)) <= OUTPUT_BODY_MAX_BYTES;
  if (fits) return { status, headers: shown, body };
  return { status, headers: shown, body: text.slice(0, CUT_TO_CHARACTERS).toWellFormed(), truncated: true };
}

function jsonIn(host: string, text: string): unknown {
  const value = tryParseJson(text);
  if (value !== undefined) return value;
  throw new OutcomeUnknown(`${host} called its answer JSON, but it is malformed or nested too deep`);
}
