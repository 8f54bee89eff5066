import * as z from 'zod';
import {
  type CreateDocumentOptions,
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi';
import { packageVersion } from '../../../bin/version.ts';
import { CONTRACT } from '../../../lambdas/api/contract/index.ts';
import type { RouteDefinition, Routes } from '../../../lambdas/api/contract/route.ts';
import { PAGE_MAX } from '../../../lambdas/api/contract/schemas.ts';
import { may, ROLES } from '../../../lambdas/people/rights.ts';
import { AREAS, areaOf, isOfSession } from './openapi-areas.ts';
import { PROBLEM_RESPONSES, problemsOf } from './openapi-problems.ts';

type OpenApi = ReturnType<typeof createDocument>;

const DESCRIPTION = `The HTTP API of a Countersign stage.

**Who calls.** Send an API key in \`x-api-key\`, or the access token of a configured OIDC issuer as \`Authorization: Bearer\`.
The credential alone determines the tenant; things of other tenants do not exist for the caller (404).

**Lists** return one page: at most \`limit\` items (default 25, at most ${PAGE_MAX}), fewer if the page would become too large.
Send \`nextCursor\` as \`cursor\` to read the next page; on the last page it is null. A cursor belongs to one list and one tenant.

**Errors** are \`application/problem+json\`. Decide by \`code\`, not by \`detail\`, which is text for people.
Unknown fields and parameters are refused. A refused request has changed nothing.

**Sizes.** A body has at most 1 MiB, a response at most 6 MB. In lists, values above 16 KB are replaced by
\`{ "omitted": { "bytes", "sha256" } }\`; \`GET /api/v1/runs/{id}/steps/{index}\` returns them in full.`;

const SECURITY_SCHEMES = {
  apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'An API key of a person or a machine' },
  token: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'An access token of an OIDC issuer that the stage or the tenant names',
  },
  githubSignature: {
    type: 'apiKey',
    in: 'header',
    name: 'x-hub-signature-256',
    description: "HMAC of the body with the tenant's webhook secret, as GitHub sends it",
  },
  webhookSignature: {
    type: 'apiKey',
    in: 'header',
    name: 'webhook-signature',
    description:
      "Standard Webhooks signature with the tenant's webhook secret; also send webhook-id and webhook-timestamp",
  },
  slackSignature: {
    type: 'apiKey',
    in: 'header',
    name: 'x-slack-signature',
    description: "Slack's signature of the body; Slack also sends x-slack-request-timestamp",
  },
  agentSignature: {
    type: 'apiKey',
    in: 'header',
    name: 'signature',
    description:
      'HTTP Message Signature (RFC 9421) with the Ed25519 key of the agent, label `agent`; also send content-digest and ' +
      'signature-input, which covers "@method", "@path" and "content-digest" with the parameters created, keyid, nonce, alg',
  },
  sessionToken: {
    type: 'http',
    scheme: 'bearer',
    description:
      'The run-scoped token of a session, from its prompt. Only for its own run, until its step ends. Signature: HMAC',
  },
} as const;
type SecurityScheme = keyof typeof SECURITY_SCHEMES;

const SUCCESS: Record<string, string> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  206: 'The requested part of the file',
};

const IDEMPOTENCY_HEADERS = z.object({
  'Idempotency-Key': z
    .string()
    .optional()
    .meta({
      description:
        'Chosen by the client. The same request with the same key again changes nothing and gets the same response; ' +
        'another request with this key gets 422.',
      example: 'deploy-731',
    }),
});

/** The OpenAPI 3.1 document of the contract. */
export function openApiDocument(contract: Readonly<Record<string, Routes>> = CONTRACT): OpenApi {
  const operations = Object.values(contract).flatMap((routes) => Object.entries(routes));
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const [name, route] of operations.toSorted(byAreaAndPath)) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(name, route) };
  }
  const used = new Set(operations.map(([, { path }]) => areaOf(path)));
  const tags = Object.entries(AREAS).flatMap(([area, tag]) => (used.has(area) ? [tag] : []));
  return createDocument(
    {
      openapi: '3.1.1',
      info: { title: 'Countersign API', version: packageVersion(), description: DESCRIPTION },
      servers: [{ url: '/', description: 'The stage that serves this document' }],
      tags,
      paths,
      components: { securitySchemes: SECURITY_SCHEMES, responses: PROBLEM_RESPONSES },
    },
    { override: simplify },
  );
}

type Overridden = Parameters<Extract<CreateDocumentOptions['override'], (...given: never[]) => void>>[0];

const AREA_ORDER = Object.keys(AREAS);

function byAreaAndPath([, a]: [string, RouteDefinition], [, b]: [string, RouteDefinition]): number {
  const place = ({ path }: RouteDefinition) => AREA_ORDER.indexOf(areaOf(path) ?? '');
  return place(a) - place(b) || Number(a.path > b.path) - Number(a.path < b.path);
}

/** Later versions may add fields to responses, so these are open. A format says what its pattern repeats. */
function simplify({ jsonSchema, io }: Overridden): void {
  if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
  if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
}

function operationOf(name: string, route: RouteDefinition): ZodOpenApiOperationObject {
  const { params, query, body, bodyType = 'application/json', example, idempotent, path } = route;
  return {
    operationId: name,
    tags: [AREAS[areaOf(route.path) ?? '']?.name ?? 'Other'],
    summary: route.summary,
    description: descriptionOf(route),
    security: securityOf(route).map((scheme) => ({ [scheme]: [] })),
    ...((params || query || idempotent) && {
      // A key with the value `undefined` is not accepted here.
      requestParams: {
        ...(params && { path: describedParams(path, params) }),
        ...(query && { query }),
        ...(idempotent && { header: IDEMPOTENCY_HEADERS }),
      },
    }),
    ...(body && {
      requestBody: {
        required: !body.safeParse({}).success,
        content: { [bodyType]: { schema: body, ...(example !== undefined && { example }) } },
      },
    }),
    responses: { ...successesOf(route), ...problemsOf(route) },
  };
}

const SINGULAR: Record<string, string> = { people: 'person', policies: 'policy', pending: 'pending change' };

/** `{name}` in `/automations/{name}` is the name of the automation, unless the contract says more. */
function describedParams(path: string, params: z.ZodObject): z.ZodObject {
  const described = Object.entries(params.shape as Record<string, z.ZodType>).map(([name, schema]) => {
    const [, things = ''] = new RegExp(`([a-z-]+)/\\{${name}\\}`).exec(path) ?? [];
    const thing = SINGULAR[things] ?? things.replace(/s$/, '').replaceAll('-', ' ');
    const description = `${name === 'id' ? 'ID' : `The ${name}`} of the ${thing}`;
    return [name, schema.meta({ description, ...schema.meta() })];
  });
  return z.object(Object.fromEntries(described));
}

function descriptionOf({ description, right, path, peopleOnly, query }: RouteDefinition): string {
  const parts = [description];
  if (right === 'public') parts.push('Public: needs no credential.');
  else if (right === 'signed' && isOfSession(path)) parts.push('For sessions, with their run-scoped token.');
  else if (right === 'signed') parts.push('The sender signs the body.');
  else {
    const roles = ROLES.filter((role) => may(role, right));
    const who = roles.length === ROLES.length ? 'every role' : roles.join(', ');
    parts.push(`Requires the right \`${right}\` (${who}).${peopleOnly ? ' Only for people, not for machines.' : ''}`);
  }
  if (query && 'cursor' in query.shape) parts.push('Returns one page; `nextCursor` returns the next.');
  return parts.filter((part) => part !== undefined).join('\n\n');
}

function securityOf({ right, path }: RouteDefinition): SecurityScheme[] {
  if (right === 'public') return [];
  if (right !== 'signed') return ['apiKey', 'token'];
  if (path.startsWith('/slack/')) return ['slackSignature'];
  if (path.startsWith('/api/v1/agent/')) return ['agentSignature'];
  if (isOfSession(path)) return ['sessionToken'];
  return [path.startsWith('/webhooks/github/') ? 'githubSignature' : 'webhookSignature'];
}

function successesOf({ responses, responseType = 'application/json' }: RouteDefinition): ZodOpenApiResponsesObject {
  const types = [responseType].flat();
  return Object.fromEntries(
    Object.entries(responses).map(([status, schema]) => [
      status,
      {
        description: SUCCESS[status] ?? 'Success',
        content: Object.fromEntries(types.map((type) => [type, { schema }])),
      },
    ]),
  );
}
