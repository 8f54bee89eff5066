import * as z from 'zod';
import { Connection as ConnectionDefinition } from '../../../pipeline/definitions.ts';
import { route } from '../route.ts';
import { PageQuery, page } from '../schemas.ts';

const CredentialState = z
  .object({ state: z.enum(['set', 'missing', 'malformed']), problem: z.string().optional() })
  .meta({ description: 'Whether there is a usable credential. The credential itself is never returned' });

const Connection = z.object({
  name: z.string(),
  baseUrl: z.string(),
  instance: z.string(),
  allowedHosts: z.array(z.string()).optional(),
  allowedTables: z.array(z.string()).optional(),
  credential: CredentialState,
  planCredential: CredentialState,
});

const Credential = z.record(z.string(), z.unknown()).meta({ example: { token: 'github_pat_…' } });

const nameParams = z.object({ name: z.string() });

export const connectionRoutes = {
  listConnections: route({
    method: 'GET',
    path: '/api/v1/connections',
    right: 'connections:read',
    summary: 'Lists connections, by name',
    query: PageQuery,
    responses: { 200: page('connections', Connection) },
  }),
  getConnection: route({
    method: 'GET',
    path: '/api/v1/connections/{name}',
    right: 'connections:read',
    summary: 'Returns a connection, without its credentials',
    params: nameParams,
    responses: { 200: Connection },
  }),
  saveConnection: route({
    method: 'PUT',
    path: '/api/v1/connections/{name}',
    right: 'connections:write',
    summary: 'Creates or replaces a connection. Credentials that are not sent stay as they are',
    params: nameParams,
    body: ConnectionDefinition.omit({ name: true }).extend({
      credential: Credential.optional(),
      /** Null removes it. */
      planCredential: Credential.nullable().optional(),
    }),
    responses: { 200: Connection.extend({ effectiveWithinSeconds: z.number() }) },
  }),
  deleteConnection: route({
    method: 'DELETE',
    path: '/api/v1/connections/{name}',
    right: 'connections:write',
    summary: 'Deletes a connection and its credentials',
    params: nameParams,
    responses: { 200: z.object({ deleted: z.string() }) },
  }),
  testConnection: route({
    method: 'POST',
    path: '/api/v1/connections/{name}/test',
    right: 'connections:test',
    summary: 'Reads something harmless with the credentials of a connection, and says what is wrong',
    params: nameParams,
    responses: {
      200: z.object({
        name: z.string(),
        ok: z.boolean(),
        findings: z.array(
          z.object({
            level: z.enum(['ok', 'warning', 'error']),
            credential: z.enum(['credential', 'planCredential']),
            text: z.string(),
          }),
        ),
      }),
    },
  }),
};

const SigningState = z.object({
  source: z.string(),
  usable: z.int(),
  generated: z.boolean(),
  problems: z.array(z.string()),
});

const sourceParams = z.object({
  source: z
    .string()
    .max(63)
    .meta({ description: 'github, servicenow, slack, or generic:NAME for a source of the tenant' }),
});

export const webhookSecretRoutes = {
  listWebhookSecrets: route({
    method: 'GET',
    path: '/api/v1/webhook-secrets',
    right: 'connections:read',
    summary: 'Lists how many usable signing secrets each sender of webhooks has, without the secrets',
    responses: { 200: z.object({ secrets: z.array(SigningState) }) },
  }),
  saveWebhookSecret: route({
    method: 'PUT',
    path: '/api/v1/webhook-secrets/{source}',
    right: 'connections:write',
    summary: 'Sets the signing secret of a sender. The secret before it stays valid until it is removed',
    params: sourceParams,
    body: z.strictObject({
      secret: z.string().max(2_000),
      keepPrevious: z.boolean().default(true),
    }),
    responses: { 200: SigningState },
  }),
  deletePreviousWebhookSecrets: route({
    method: 'DELETE',
    path: '/api/v1/webhook-secrets/{source}/previous',
    right: 'connections:write',
    summary: 'Ends the rotation of a signing secret: only the newest one stays valid',
    params: sourceParams,
    responses: { 200: SigningState },
  }),
};
