import * as z from 'zod';
import { CountersignError } from '../../run/errors.ts';
import type { WriteResult } from '../../run/receipt.ts';
import { type Access, operation, type Performance, unread, writeKey } from '../connector.ts';
import { asRead } from '../exchange.ts';
import { destinationOf } from './destination.ts';
import { PlainUrl } from './plain-url.ts';
import { type Resolve, systemResolve } from './public-address.ts';
import { judged, outputOf, withoutSecretHeaders } from './response.ts';
import { type Send, sendToChecked } from './send.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const READING_METHODS: readonly string[] = ['GET', 'HEAD'];
const HEADERS_MAX = 30;
const HEADER_VALUE_MAX_CHARACTERS = 2_000;
const BODY_MAX_BYTES = 64 * 1024;

/** Set for every request, by what it is and where it goes. */
const FRAMING = /^(host|content-length|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|proxy-.*)$/;
/** Everybody may read a workflow; what opens doors belongs into the connections secret. */
const CREDENTIAL = /^(authorization|cookie)$/;
const SecretHeaderName = z
  .string()
  .toLowerCase()
  .regex(/^[a-z0-9-]+$/, 'a header name')
  .refine((name) => !FRAMING.test(name), 'this header is set for you');
const HeaderName = SecretHeaderName.refine((name) => !CREDENTIAL.test(name), 'put this into the connections secret');
const HeaderValue = z
  .string()
  .max(HEADER_VALUE_MAX_CHARACTERS)
  .regex(/^[ -~]*$/, 'plain ASCII');
const Headers = z
  .record(HeaderName, HeaderValue)
  .refine((headers) => Object.keys(headers).length <= HEADERS_MAX, `at most ${HEADERS_MAX} headers`);
const Status = z.int().min(200).max(599);

const GetInput = z.strictObject({
  url: PlainUrl,
  headers: Headers.optional(),
  /** Statuses that mean success, instead of 200 to 299. */
  expectStatus: z.union([Status, z.array(Status).min(1)]).optional(),
});
type GetInput = z.infer<typeof GetInput>;

const RequestInput = GetInput.extend({
  method: z.enum(METHODS),
  /** Text is sent as it is, anything else as JSON. */
  body: z
    .json()
    .refine((body) => Buffer.byteLength(asText(body)) <= BODY_MAX_BYTES, `at most ${BODY_MAX_BYTES} bytes`)
    .optional(),
  /** The header in which the target takes an idempotency key: the write's mark goes there, so a person may repeat it. */
  idempotencyHeader: HeaderName.optional(),
}).refine(({ method, body }) => body === undefined || !READING_METHODS.includes(method), 'GET and HEAD have no body');
type RequestInput = z.infer<typeof RequestInput>;

/** By host, as the allow list names it: headers that are added to its requests and shown nowhere. */
const Credential = z
  .object({ hosts: z.record(z.string(), z.object({ headers: z.record(SecretHeaderName, HeaderValue) })) })
  .default({ hosts: {} });

export interface HttpPorts {
  resolve: Resolve;
  send: Send;
}

/** The http tools, on these ways to find a host and to reach it. */
export function httpOperations(ports: HttpPorts) {
  return {
    /** For writes. What one does only its target knows: a lost answer brings a person in. */
    request: operation({
      tool: 'http.request',
      effect: 'opaque',
      risk: 'medium',
      reversible: false,
      connection: 'http',
      input: RequestInput,
      urlField: 'url',
      content: ['body'],
      propose: (input, instance) => proposal(input.method, input, instance),
      perform: (input, performance) => {
        const performed = perform(ports, input, performance);
        return READING_METHODS.includes(input.method) ? asRead(performed) : performed;
      },
    }),
    /** For reads: repeated without harm, and not counted as a write. */
    get: operation({
      tool: 'http.get',
      effect: 'read',
      risk: 'low',
      reversible: false,
      connection: 'http',
      input: GetInput,
      urlField: 'url',
      propose: (input, instance) => proposal('GET', input, instance),
      perform: (input, performance) => asRead(perform(ports, { ...input, method: 'GET' }, performance)),
    }),
  };
}

export const { request: httpRequest, get: httpGet } = httpOperations({ resolve: systemResolve, send: sendToChecked });

/**
 * Whoever knows some URLs may use them: the target shows path and query by a digest only. Both are part of it, since both
 * say what is written to; so an edit can change neither.
 */
function proposal(method: string, input: GetInput, instance: string) {
  const { origin, host, pathname, search } = new URL(input.url);
  return {
    target: `http:${origin}:${unread(pathname + search)}`,
    fields: { ...input },
    key: writeKey(['http', method, instance, host], input),
  };
}

async function perform(
  { resolve, send }: HttpPorts,
  input: RequestInput,
  { access, mark }: Performance,
): Promise<WriteResult> {
  const { method } = input;
  const destination = await destinationOf(input.url, access, resolve);
  const secret = secretHeaders(access, destination.host);
  const headers = { ...plainHeaders(input, mark), ...secret };
  const body = input.body === undefined ? undefined : asText(input.body);
  const received = await send({ destination, method, headers, body });
  const success = judged(destination.host, received, { method, expected: input.expectStatus });
  const answer = withoutSecretHeaders(success, secret);
  return {
    output: outputOf(destination.host, answer),
    reversal: { irreversible: 'only its target knows how to take a request back' },
    response: { status: answer.status },
  };
}

function plainHeaders({ headers, body, idempotencyHeader }: RequestInput, mark: string): Record<string, string> {
  const type = typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/json';
  return {
    'user-agent': 'countersign',
    ...(body !== undefined && { 'content-type': type }),
    ...headers,
    ...(idempotencyHeader && { [idempotencyHeader]: mark }),
  };
}

function secretHeaders({ credential }: Access, host: string): Record<string, string> {
  const parsed = Credential.safeParse(credential);
  if (!parsed.success) {
    throw new CountersignError(
      'CONNECTION_MISSING',
      'the http credential has another form; write {"hosts": {"api.example.com": {"headers": {...}}}}',
    );
  }
  return parsed.data.hosts[host]?.headers ?? {};
}

function asText(body: z.core.util.JSONType): string {
  return typeof body === 'string' ? body : JSON.stringify(body);
}
