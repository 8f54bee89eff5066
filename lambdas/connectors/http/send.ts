import { request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import type { LookupFunction } from 'node:net';
import { allowedMs, traceHeader } from '../attempt-deadline.ts';
import { EXCHANGE_TIMEOUT_MS } from '../exchange.ts';
import { notSent, OutcomeUnknown } from '../target-errors.ts';
import type { Destination } from './destination.ts';

/** The rest of a longer response is not read; a step's output cannot store more. */
const RESPONSE_MAX_BYTES = 64 * 1024;

export interface SentRequest {
  destination: Destination;
  method: string;
  headers: Record<string, string>;
  body: string | undefined;
}

export interface ReceivedResponse {
  status: number;
  /** Lower-case names. */
  headers: Record<string, string>;
  text: string;
  /** The response was longer than `RESPONSE_MAX_BYTES`. */
  truncated: boolean;
}

export type Send = (request: SentRequest) => Promise<ReceivedResponse>;

/**
 * Sends one request to a checked address. `Host` and the name in the certificate are those of the URL. Redirects are
 * returned like other responses. Errors say whether the target can have acted.
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
      headers: {
        ...traceHeader(),
        ...headers,
        ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }),
      },
      lookup: pinnedTo(addresses),
      // A new connection: a reused one would go to the address of an earlier request.
      agent: false,
      signal: AbortSignal.timeout(timeoutMs),
    });
    // Until the connection is established, including TLS, the target has received nothing.
    request.once('socket', (socket) => {
      socket.once(secure ? 'secureConnect' : 'connect', () => {
        connected = true;
      });
    });
    const failed = (cause: unknown) =>
      reject(connected ? new OutcomeUnknown(`${host} sent no complete response`, cause) : notSent(host, cause));
    request.on('error', failed);
    request.once('upgrade', (_response, socket) => {
      socket.destroy();
      failed(new Error('the target changed the protocol'));
    });
    request.once('response', async (response) => {
      try {
        const { bytes, truncated } = await readUpTo(RESPONSE_MAX_BYTES, response);
        const text = bytes.toString('utf8');
        resolve({ status: response.statusCode ?? 0, headers: plainHeaders(response.headers), text, truncated });
      } catch (error) {
        failed(error);
      } finally {
        request.destroy();
      }
    });
    request.end(body);
  });
};

/** A DNS lookup that returns only the checked addresses. */
function pinnedTo(addresses: Destination['addresses']): LookupFunction {
  return (_hostname, options, callback) => {
    const [first] = addresses;
    if (options.all) callback(null, addresses);
    else callback(null, first?.address ?? '', first?.family);
  };
}

async function readUpTo(maxBytes: number, source: AsyncIterable<Buffer>) {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of source) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > maxBytes) break;
  }
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), truncated: size > maxBytes };
}

function plainHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value ?? ''].flat().join(', ')]));
}
