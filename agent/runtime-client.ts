import type { KeyObject } from 'node:crypto';
import * as z from 'zod';
import { AGENT_SOCKET_PATH } from '../lambdas/agents/agent-terms.ts';
import {
  type AckRequest,
  AckResponse,
  type CompleteRequest,
  CompleteResponse,
  type DrainRequest,
  DrainResponse,
  type EnrolRequest,
  EnrolResponse,
  type HeartbeatRequest,
  HeartbeatResponse,
  type OutputRequest,
  OutputResponse,
  type RegisterRequest,
  RegisterResponse,
} from '../lambdas/agents/protocol.ts';
import { formatNonce, signRequest } from '../lambdas/agents/request-signature.ts';
import { tryParseJsonBytes } from '../lambdas/entry/parse-json.ts';
import { type HttpResponse, sendRequest } from './http-request.ts';
import type { MachineClock, ServerClock } from './server-clock.ts';

/** The runtime did not respond, or failed. The same request may succeed later. */
export class RuntimeUnavailable extends Error {}

/** The runtime refused the request. Repeating it does not help. */
export class RuntimeRefused extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export interface Caller {
  /** The id of the agent; for enrolment the thumbprint of its key. */
  keyId: string;
  key: KeyObject;
  bootId: string;
}

const ProblemBody = z.object({
  code: z.string(),
  detail: z.string().optional(),
  title: z.string().optional(),
  /** If the time of the signature is wrong. */
  server_time: z.iso.datetime().optional(),
});

const TIMEOUT_MS = 10_000;
/** A response with these statuses says nothing about the request itself. */
const isTemporary = (status: number): boolean => status >= 500 || status === 429 || status === 408;

/**
 * The agent API. Requests are sent one after the other, because the runtime accepts only growing numbers: a request that
 * another one overtakes would look like a replay.
 */
export class RuntimeClient {
  readonly #url: string;
  readonly #caller: Caller;
  readonly #clock: ServerClock;
  readonly #machine: MachineClock;
  #counter = 0;
  /** When the last request left, by the monotonic clock. */
  #sentAt = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(url: string, caller: Caller, clock: ServerClock, machine: MachineClock) {
    this.#url = url;
    this.#caller = caller;
    this.#clock = clock;
    this.#machine = machine;
  }

  enrol(body: z.infer<typeof EnrolRequest>) {
    return this.#post('enrol', body, EnrolResponse);
  }

  register(body: z.infer<typeof RegisterRequest>) {
    return this.#post('register', body, RegisterResponse);
  }

  async heartbeat(body: z.infer<typeof HeartbeatRequest>) {
    const response = await this.#post('heartbeat', body, HeartbeatResponse);
    this.#clock.learn(Date.parse(response.server_time), this.#sentAt);
    return response;
  }

  ack(body: z.infer<typeof AckRequest>) {
    return this.#post(`${this.#caller.keyId}/ack`, body, AckResponse);
  }

  output(body: z.infer<typeof OutputRequest>) {
    return this.#post(`${this.#caller.keyId}/output`, body, OutputResponse);
  }

  complete(body: z.infer<typeof CompleteRequest>) {
    return this.#post(`${this.#caller.keyId}/complete-step`, body, CompleteResponse);
  }

  drain(body: z.infer<typeof DrainRequest>) {
    return this.#post(`${this.#caller.keyId}/drain`, body, DrainResponse);
  }

  unregister() {
    return this.#post(`${this.#caller.keyId}/unregister`, {}, z.unknown());
  }

  /** The headers that open the socket. */
  socketHeaders(): Record<string, string> {
    return this.#signed('GET', AGENT_SOCKET_PATH, '');
  }

  #post<Schema extends z.ZodType>(route: string, body: unknown, schema: Schema): Promise<z.output<Schema>> {
    const sent = this.#last.then(() => this.#send(route, JSON.stringify(body), schema));
    this.#last = sent.catch(() => undefined);
    return sent;
  }

  async #send<Schema extends z.ZodType>(route: string, body: string, schema: Schema): Promise<z.output<Schema>> {
    const first = await this.#exchange(route, body);
    // The response has the time of the runtime: with it, the second try is signed correctly.
    const { server_time } = problemOf(first) ?? {};
    if (server_time !== undefined) this.#clock.learn(Date.parse(server_time), this.#sentAt);
    const response = server_time === undefined ? first : await this.#exchange(route, body);
    if (isTemporary(response.status)) throw new RuntimeUnavailable(`the runtime responded with ${response.status}`);
    if (response.status >= 400) {
      const problem = problemOf(response);
      const message = problem?.detail ?? problem?.title ?? `the runtime responded with ${response.status}`;
      throw new RuntimeRefused(response.status, problem?.code ?? '', message);
    }
    const parsed = schema.safeParse(jsonOf(response.body));
    if (parsed.success) return parsed.data;
    throw new RuntimeUnavailable(
      `the response of ${route} is not in the protocol; is ${this.#url} a Countersign stage?`,
    );
  }

  async #exchange(route: string, body: string): Promise<HttpResponse> {
    const url = new URL(`${this.#url.replace(/\/+$/, '')}/api/v1/agent/${route}`);
    const signed = this.#signed('POST', url.pathname, body);
    this.#sentAt = this.#machine.monotonic();
    try {
      const headers = { 'content-type': 'application/json', ...signed };
      return await sendRequest({ method: 'POST', url, headers, body, timeoutMs: TIMEOUT_MS });
    } catch (cause) {
      throw new RuntimeUnavailable(`${url.host} does not respond: ${(cause as Error).message}`, { cause });
    }
  }

  #signed(method: string, path: string, body: string): Record<string, string> {
    const { keyId, bootId, key } = this.#caller;
    this.#counter += 1;
    const nonce = formatNonce(bootId, this.#counter);
    return signRequest({ method, path, body }, { keyId, nonce, created: this.#clock.now() }, key);
  }
}

const jsonOf = (body: Buffer): unknown => (body.length === 0 ? {} : tryParseJsonBytes(body));

function problemOf({ status, body }: HttpResponse): z.infer<typeof ProblemBody> | undefined {
  return status < 400 ? undefined : ProblemBody.safeParse(jsonOf(body)).data;
}
