import * as z from 'zod';
import { RISKS } from '../../connectors/connector.ts';
import { Person } from '../../people/people.ts';
import { ROLES } from '../../people/rights.ts';
import { route } from './route.ts';
import { PageQuery, page, Timestamp } from './schemas.ts';

export const signInRoutes = {
  listSignIn: route({
    method: 'GET',
    path: '/api/v1/sign-in',
    right: 'public',
    summary: 'Lists the OIDC issuers that sign people in at this stage',
    responses: {
      200: z.object({
        issuers: z.array(
          z.object({
            name: z.string(),
            issuer: z.string(),
            clientId: z.string().meta({ description: 'The public client for authorization code with PKCE' }),
            audience: z.string().meta({ description: 'The claim `aud` that the API requires' }),
          }),
        ),
      }),
    },
  }),
};

const Me = z.object({
  tenant: z.string(),
  person: z.string().meta({ description: 'ID of the person, or name of the machine', example: 'ana' }),
  name: z.string().optional(),
  machine: z.boolean(),
  role: z.enum(ROLES).meta({ description: 'The role with this credential' }),
  tier: z.enum(RISKS).optional(),
  groups: z.array(z.string()),
  rights: z.array(z.string()),
  credential: z.object({
    kind: z.enum(['api_key', 'oidc']),
    name: z.string().optional().meta({ description: 'Name of the API key or of the issuer' }),
    expiresAt: Timestamp.optional(),
    issuedBy: z.string().optional().meta({ description: 'Who created the key for this person; it cannot approve' }),
  }),
});

const ApiKeyView = z.object({
  name: z.string(),
  person: z.string(),
  machine: z.boolean(),
  holder: z.enum(['person', 'machine', 'none']).meta({
    description: '`none`: neither a person of the tenant nor marked as a machine. Requests with the key are refused',
  }),
  role: z.enum(ROLES),
  createdBy: z.string().optional(),
  createdAt: Timestamp.optional(),
  expiresAt: Timestamp.optional(),
  expired: z.boolean(),
  lastUsedAt: Timestamp.optional().meta({ description: 'The hour of the last use' }),
});

const KeyName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,62}$/, 'use up to 63 lower-case letters, digits, dots, dashes and underscores')
  .meta({ example: 'deploy-pipeline' });

/** How a browser or a program opens the live feed: browsers cannot send headers with a WebSocket. */
export const liveRoutes = {
  createLiveTicket: route({
    method: 'POST',
    path: '/api/v1/live/ticket',
    right: 'runs:read',
    summary: 'Creates a ticket that opens one connection to the live feed, within 60 seconds',
    description:
      'Connect to `url` with the query parameter `ticket`. A stage without the live feed responds with 404: poll instead.',
    body: z.strictObject({}).default({}),
    responses: {
      201: z.object({
        url: z.string().meta({ example: 'wss://abc123.execute-api.eu-west-1.amazonaws.com/live' }),
        ticket: z.string(),
        expiresAt: Timestamp,
        connectionEndsAt: Timestamp.meta({ description: 'Connect again, with a new ticket, before this time' }),
        connectionSeconds: z.int().meta({ description: 'The same, for clients whose clock is wrong' }),
      }),
    },
  }),
};

export const accessRoutes = {
  getMe: route({
    method: 'GET',
    path: '/api/v1/me',
    right: 'people:read',
    summary: 'Returns the caller: person, role, rights and credential',
    responses: { 200: Me },
  }),
  listApiKeys: route({
    method: 'GET',
    path: '/api/v1/api-keys',
    right: 'api-keys:own',
    summary: "Lists API keys by name: the caller's own, with the right api-keys:read all of the tenant",
    query: PageQuery.extend({ person: z.string().max(100).optional() }),
    responses: { 200: page('apiKeys', ApiKeyView) },
  }),
  createApiKey: route({
    method: 'POST',
    path: '/api/v1/api-keys',
    right: 'api-keys:own',
    summary: 'Creates an API key, which is shown only once. For machines and other people it requires api-keys:write',
    body: z.strictObject({
      name: KeyName,
      role: z.enum(ROLES).optional().meta({ description: "Default: the caller's role. A machine needs one" }),
      person: Person.shape.id.optional().meta({ description: 'Default: the caller' }),
      machine: z.boolean().default(false).meta({ description: 'The key is for a program and belongs to nobody' }),
      expiresAt: z.iso.datetime().optional().meta({ description: 'Default: in 90 days. At most a year ahead' }),
    }),
    responses: { 201: ApiKeyView.extend({ key: z.string().meta({ description: 'The API key itself' }) }) },
  }),
  revokeApiKey: route({
    method: 'DELETE',
    path: '/api/v1/api-keys/{name}',
    right: 'api-keys:own',
    summary: "Revokes an API key at once: the caller's own, with the right api-keys:write any",
    params: z.object({ name: z.string() }),
    responses: { 200: z.object({ revoked: z.string() }) },
  }),
};
