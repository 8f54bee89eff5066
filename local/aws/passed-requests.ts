import type { WireReply, WireRequest } from './wire.ts';

/** A request that a function thread passes as a message (local/lambda/aws-requests.mjs). */
export interface PassedRequest {
  kind: 'aws';
  id: number;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string | Uint8Array;
}

/** How a request is answered: with a reply, or not at all, as if the connection had been closed. */
export interface Answer {
  send(reply: WireReply): void;
  lose(): void;
}

export function wireRequest({ method, path: target, headers, body }: PassedRequest): WireRequest {
  const at = target.indexOf('?');
  return {
    method,
    path: at < 0 ? target : target.slice(0, at),
    query: new URLSearchParams(at < 0 ? '' : target.slice(at + 1)),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)])),
    body: typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength),
  };
}
