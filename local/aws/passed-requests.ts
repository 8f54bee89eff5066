import { encoded, firstHalf } from '../simulators/exchange.ts';
import type { Simulators } from '../simulators/simulators.ts';
import type { WireReply, WireRequest } from './wire.ts';

/** A request to AWS or to a simulator that a function thread passes as a message (local/lambda/host-requests.mjs). */
export interface PassedRequest {
  kind: 'aws' | 'simulator';
  id: number;
  method: string;
  /** With the query. */
  path: string;
  /** Names and values, each with a line break after it. */
  headers: string;
  body: string | Uint8Array;
}

export interface PassedRequests {
  /** Requests to this origin whose path begins with `under`. */
  addresses: { url: string; under: string; kind: PassedRequest['kind'] }[];
  serve(request: PassedRequest, answer: Answer): void;
}

/** How a request is answered: with a reply, or not at all, as if the connection had been closed. */
export interface Answer {
  /** `cut`: the connection is closed after this part of the body. */
  send(reply: WireReply & { cut?: boolean }): void;
  lose(): void;
}

export interface SimulatorsAt {
  /** Their paths begin with it. */
  url: string;
  answer: Simulators['answer'];
}

interface Served {
  awsEndpointUrl: string;
  serveAws(request: WireRequest, answer: Answer): void;
  simulators?: SimulatorsAt;
}

export function passedRequests({ awsEndpointUrl, serveAws, simulators }: Served): PassedRequests {
  const aws = { url: awsEndpointUrl, under: '/', kind: 'aws' as const };
  if (!simulators)
    return { addresses: [aws], serve: (request, answer) => serveAws(new PassedWireRequest(request), answer) };
  const { pathname } = new URL(simulators.url);
  return {
    addresses: [aws, { url: simulators.url, under: `${pathname}/`, kind: 'simulator' as const }],
    serve(request, answer) {
      if (request.kind === 'aws') serveAws(new PassedWireRequest(request), answer);
      else void serveSimulator(simulators, request, answer);
    },
  };
}

/** With the faults of the simulators: a lost response, or half of one. */
async function serveSimulator(simulators: SimulatorsAt, passed: PassedRequest, answer: Answer): Promise<void> {
  const { method, path: url, headers, body } = passed;
  const text = typeof body === 'string' ? body : Buffer.from(body).toString('utf8');
  const { response, delivery } = await simulators.answer({ method, url, headers: passedHeaders(headers), text });
  const reply = encoded(response);
  if (delivery === 'lost') answer.lose();
  else if (delivery === 'whole') answer.send(reply);
  else answer.send({ ...reply, body: firstHalf(reply.body), cut: true });
}

/** Most services read neither the query nor the bytes of the body. */
class PassedWireRequest implements WireRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly text: string | undefined;
  readonly #query: string;
  readonly #body: string | Uint8Array;

  constructor({ method, path: target, headers, body }: PassedRequest) {
    const at = target.indexOf('?');
    this.method = method;
    this.path = at < 0 ? target : target.slice(0, at);
    this.headers = passedHeaders(headers);
    this.text = typeof body === 'string' ? body : undefined;
    this.#query = at < 0 ? '' : target.slice(at + 1);
    this.#body = body;
  }

  get query(): URLSearchParams {
    return new URLSearchParams(this.#query);
  }

  get body(): Buffer {
    const body = this.#body;
    return typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  }
}

function passedHeaders(lines: string): Record<string, string> {
  const headers: Record<string, string> = {};
  const parts = lines.split('\n');
  for (let index = 0; index + 1 < parts.length; index += 2) {
    headers[(parts[index] ?? '').toLowerCase()] = parts[index + 1] ?? '';
  }
  return headers;
}
