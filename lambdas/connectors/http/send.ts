import { request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import type { LookupFunction } from 'node:net';
import { allowedMs } from '../attempt-deadline.ts';
import { EXCHANGE_TIMEOUT_MS, notSent, OutcomeUnknown } from '../exchange.ts';
import type { Destination } from './destination.ts';

/** As much of an answer as is read; a step's output holds no more. */
export const ANSWER_MAX_BYTES = 64 * 1024;

export interface SentRequest {
  destination: Destination;
  method: string;
  headers: Record<string, string>;
  body: string | undefined;
}

export interface ReceivedAnswer {
  status: number;
  /** Lower-case names. */
  headers: Record<string, string>;
  text: string;
  /** There was more than `ANSWER_MAX_BYTES`. */
  cut: boolean;
}

export type Send = (request: SentRequest) => Promise<ReceivedAnswer>;

/**
 * One request to an address that was checked before; `Host` and the name in the certificate stay the URL's. Redirects
 * are answers like any other. Failures say whether the target can have acted.
 */
export const sendToChecked: Send = async ({ destination, method, headers, body }) => {
  const { url, host, addresses } = destination;
  const secure = url.protocol === 'https:';
  const writes = method !== 'GET' && method !== 'HEAD';
  const timeoutMs = allowedMs({ system: host, writes, timeoutMs: EXCHANGE_TIMEOUT_MS });
  return new Promise((resolve, reject) => {
    let connected = false;
    const request = (secure ? requestTls : requestPlain)(url, {
      method,
      headers: { ...headers, ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }) },
      lookup: pinnedTo(addresses),
      // A connection of its own: a kept one would lead to whatever was checked for an earlier request.
      agent: false,
      signal: AbortSignal.timeout(timeoutMs),
    });
    // Until the connection stands, TLS included, the target has seen nothing of the request.
    request.once('socket', (socket) => {
      socket.once(secure ? 'secureConnect' : 'connect', () => {
        connected = true;
      });
    });
    const failed = (cause: unknown) =>
      reject(connected ? new OutcomeUnknown(`${host} did not answer, or not to the end`, cause) : notSent(host, cause));
    request.on('error', failed);
    request.once('upgrade', (_response, socket) => {
      socket.destroy();
      failed(new Error('the target changed the protocol'));
    });
    request.once('response', async (response) => {
      try {
        const { bytes, cut } = await readUpTo(ANSWER_MAX_BYTES, response);
        const text = bytes.toString('utf8');
        resolve({ status: response.statusCode ?? 0, headers: plainHeaders(response.headers), text, cut });
      } catch (error) {
        failed(error);
      } finally {
        request.destroy();
      }
    });
    request.end(body);
  });
};

/** Answers whoever asks for the host's address with those that were checked, without asking anybody again. */
function pinnedTo(addresses: Destination['addresses']): LookupFunction {
  return (_hostname, options, callback) => {
    const [first] = addresses;
    if (options.all) callback(null, addresses);
    else callback(null, first?.address ?? '', first?.family);
  };
}

async function readUpTo(maxBytes: number, source: AsyncIterable<Buffer>): Promise<{ bytes: Buffer; cut: boolean }> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of source) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > maxBytes) break;
  }
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), cut: size > maxBytes };
}

function plainHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value ?? ''].flat().join(', ')]));
}
