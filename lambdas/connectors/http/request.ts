import * as z from 'zod';
import type { WriteResult } from '../../run/receipt.ts';
import { type Access, credentialOf, operation, shortHash, type WriteContext, writeKey } from '../connector.ts';
import { asRead } from '../target-errors.ts';
import { destinationOf } from './destination.ts';
import { PlainUrl } from './plain-url.ts';
import { type Resolve, systemResolve } from './public-address.ts';
import { assertSuccess, HttpOutput, outputOf, redactResponse } from './response.ts';
import { type Send, sendToChecked } from './send.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const READING_METHODS: readonly string[] = ['GET', 'HEAD'];
const HEADERS_MAX = 30;
const HEADER_VALUE_MAX_CHARACTERS = 2_000;
const BODY_MAX_BYTES = 64 * 1024;

/** Headers that the HTTP client sets. */
const FRAMING = /^(host|content-length|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|proxy-.*)$/;
/** Everybody can read a workflow, so credentials belong in the connections secret. */
const CREDENTIAL = /^(authorization|cookie)$/;
const SecretHeaderName = z.lazy(() =>
  z
    .string()
    .toLowerCase()
    .regex(/^[a-z0-9-]+$/, 'a header name')
    .refine((name) => !FRAMING.test(name), 'remove this header; it is set automatically'),
);
const HeaderName = SecretHeaderName.refine((name) => !CREDENTIAL.test(name), 'put this into the connections secret');
const HeaderValue = z.lazy(() =>
  z
    .string()
    .max(HEADER_VALUE_MAX_CHARACTERS)
    .regex(/^[ -~]*$/, 'plain ASCII'),
);
const Headers = z.lazy(() =>
  z
    .record(HeaderName, HeaderValue)
    .refine((headers) => Object.keys(headers).length <= HEADERS_MAX, `at most ${HEADERS_MAX} headers`),
);
const Status = z.int().min(200).max(599);

const GetInput = z.lazy(() =>
  z.strictObject({
    url: PlainUrl.describe('the address; its host must be allowed in the connection'),
    headers: Headers.optional().describe('headers without credentials; those are in the connections secret'),
    expectStatus: z
      .union([Status, z.array(Status).min(1)])
      .optional()
      .describe('statuses that mean success, instead of 200 to 299'),
  }),
);
type GetInput = z.infer<typeof GetInput>;

const RequestInput = z.lazy(() =>
  GetInput.unwrap()
    .extend({
      method: z.enum(METHODS).describe('the HTTP method'),
      body: z
        .json()
        .refine((body) => Buffer.byteLength(asText(body)) <= BODY_MAX_BYTES, `at most ${BODY_MAX_BYTES} bytes`)
        .optional()
        .describe('text is sent unchanged, any other value as JSON'),
      idempotencyHeader: HeaderName.optional().describe(
        "the target's header for an idempotency key; it carries the mark of the write, so that a person can safely repeat it",
      ),
    })
    .refine(({ method, body }) => body === undefined || !READING_METHODS.includes(method), 'GET and HEAD have no body'),
);
type RequestInput = z.infer<typeof RequestInput>;

/** For each allowed host, secret headers that are added to its requests. */
const Credential = z.lazy(() =>
  z
    .object({ hosts: z.record(z.string(), z.object({ headers: z.record(SecretHeaderName, HeaderValue) })) })
    .default({ hosts: {} }),
);

export interface HttpPorts {
  resolve: Resolve;
  send: Send;
}

export function httpOperations(ports: HttpPorts) {
  return {
    /** For writes. Only the target knows their effect, so after a lost response a person decides. */
    request: operation({
      tool: 'http.request',
      summary: 'Sends an HTTP request that may write, to a host in `allowedHosts` of the connection.',
      effect: 'opaque',
      risk: 'medium',
      reversible: false,
      connection: 'http',
      input: RequestInput,
      output: HttpOutput,
      urlField: 'url',
      content: ['body'],
      fixed: ['url'],
      propose: (input, instance) => proposal(input.method, input, instance),
      perform: (input, context) => {
        const performed = perform(ports, input, context);
        return READING_METHODS.includes(input.method) ? asRead(performed) : performed;
      },
    }),
    /** For reads, which can be repeated and do not count as writes. */
    get: operation({
      tool: 'http.get',
      summary: 'Sends a GET request to a host in `allowedHosts` of the connection.',
      effect: 'read',
      risk: 'low',
      reversible: false,
      connection: 'http',
      input: GetInput,
      output: HttpOutput,
      urlField: 'url',
      fixed: ['url'],
      propose: (input, instance) => proposal('GET', input, instance),
      perform: (input, context) => asRead(perform(ports, { ...input, method: 'GET' }, context)),
    }),
  };
}

export const { request: httpRequest, get: httpGet } = httpOperations({ resolve: systemResolve, send: sendToChecked });

/**
 * Path and query select the target, so an edit cannot change them. The target contains only their hash, because some
 * URLs are secrets.
 */
function proposal(method: string, input: GetInput, instance: string) {
  const { origin, host, pathname, search } = new URL(input.url);
  return {
    target: `http:${origin}:${shortHash(pathname + search)}`,
    fields: { ...input },
    key: writeKey(['http', method, instance, host], input),
  };
}

async function perform(
  { resolve, send }: HttpPorts,
  input: RequestInput,
  { access, mark }: WriteContext,
): Promise<WriteResult> {
  const { method } = input;
  const destination = await destinationOf(input.url, access, resolve);
  const secret = secretHeaders(access, destination.host);
  const headers = { ...plainHeaders(input, mark), ...secret };
  const body = input.body === undefined ? undefined : asText(input.body);
  const response = await send({ destination, method, headers, body });
  assertSuccess(destination.host, response, { method, expected: input.expectStatus });
  return {
    output: outputOf(destination.host, redactResponse(response, secret)),
    reversal: { irreversible: 'only the target knows how to undo an HTTP request' },
    response: { status: response.status },
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

/** The secret headers of each host; throws CONNECTION_MISSING if the credential has another form. */
export function httpCredential(access: Pick<Access, 'credential'>): z.infer<typeof Credential> {
  const form = 'the http credential is malformed; write {"hosts": {"api.example.com": {"headers": {...}}}}';
  return credentialOf(access, Credential, form);
}

const secretHeaders = (access: Access, host: string): Record<string, string> =>
  httpCredential(access).hosts[host]?.headers ?? {};

function asText(body: z.core.util.JSONType): string {
  return typeof body === 'string' ? body : JSON.stringify(body);
}
