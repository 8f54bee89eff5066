import { request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

export interface HttpRequest {
  method: string;
  url: URL;
  headers: Readonly<Record<string, string>>;
  body?: string;
  timeoutMs: number;
}

export interface HttpResponse {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The caller may overwrite it. */
  body: Buffer;
}

const RESPONSE_MAX_BYTES = 4 * 1024 * 1024;
/** One connection stays open between requests. */
const connections = new HttpsAgent({ keepAlive: true, maxSockets: 4, timeout: 60_000 });

/** One request without retries. `fetch` would need 10 MB more while the agent is idle. Redirects are not followed. */
export function sendRequest({ method, url, headers, body, timeoutMs }: HttpRequest): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    const isTls = url.protocol === 'https:';
    const send = isTls ? httpsRequest : httpRequest;
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const outgoing = send(url, { method, headers: { ...headers, ...length }, ...(isTls && { agent: connections }) });
    // Covers the whole exchange: name, connection, TLS, response.
    const timer = setTimeout(() => outgoing.destroy(new Error(`no response within ${timeoutMs / 1000} s`)), timeoutMs);
    const fail = (error: Error) => {
      clearTimeout(timer);
      reject(error);
    };
    outgoing.once('error', fail);
    outgoing.once('response', (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > RESPONSE_MAX_BYTES) outgoing.destroy(new Error('the response is too large'));
        else chunks.push(chunk);
      });
      response.once('error', fail);
      response.once('close', () => {
        if (!response.complete) fail(new Error('the connection was closed within the response'));
      });
      response.once('end', () => {
        clearTimeout(timer);
        const whole = Buffer.concat(chunks);
        for (const chunk of chunks) chunk.fill(0);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: whole });
      });
    });
    outgoing.end(body);
  });
}
