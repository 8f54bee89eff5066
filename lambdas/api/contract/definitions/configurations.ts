import * as z from 'zod';
import { AGENT_ENVIRONMENTS } from '../../../agents/agent-terms.ts';
import { Configuration as ConfigurationDefinition } from '../../../pipeline/configuration.ts';
import { route } from '../route.ts';
import { PageQuery, page } from '../schemas.ts';

const Revision = z.int().positive().meta({ description: 'Counts the changes', example: 3 });

const Configuration = z.object({
  name: z.string(),
  description: z.string().optional(),
  routing: z.string().optional(),
  session: z.discriminatedUnion('provider', [
    z.object({ provider: z.literal('a2a'), url: z.string(), connection: z.string() }),
    z.object({
      provider: z.literal('agent'),
      environment: z.enum(AGENT_ENVIRONMENTS),
      capabilities: z.array(z.string()),
      ...{ command: z.string().optional(), args: z.array(z.string()).optional(), profile: z.string().optional() },
      ...{ segment: z.string().optional(), credentials: z.array(z.string()).optional() },
      rollback: z.object({ command: z.string(), args: z.array(z.string()).optional() }).optional(),
    }),
  ]),
  model: z.string().optional(),
  instructions: z.string().optional(),
  author: z.string().optional().meta({
    description:
      'Who last changed where sessions run or their instructions. They cannot approve what the sessions propose',
  }),
  revision: Revision,
});
Configuration.register(z.globalRegistry, { id: 'Configuration' });

const nameParams = z.object({ name: z.string() });
/** In a query, so text. */
const RevisionQuery = z.object({
  revision: z
    .string()
    .regex(/^[1-9]\d{0,8}$/, 'the number of a revision')
    .optional()
    .meta({ description: 'Delete only this revision' }),
});

export const configurationRoutes = {
  listConfigurations: route({
    method: 'GET',
    path: '/api/v1/configurations',
    right: 'automations:read',
    summary: 'Lists configurations of sessions, by name',
    query: PageQuery,
    responses: { 200: page('configurations', Configuration) },
  }),
  getConfiguration: route({
    method: 'GET',
    path: '/api/v1/configurations/{name}',
    right: 'automations:read',
    summary: 'Returns a configuration',
    params: nameParams,
    responses: { 200: Configuration },
  }),
  saveConfiguration: route({
    method: 'PUT',
    path: '/api/v1/configurations/{name}',
    right: 'automations:write',
    summary: 'Creates or replaces a configuration',
    params: z.object({ name: ConfigurationDefinition.shape.name }),
    // The path names the configuration. A name in the body must be the same.
    body: ConfigurationDefinition.extend({
      name: z.string().optional(),
      revision: Revision.optional().meta({
        description: 'The revision that you read. If the configuration was changed since then, the change is refused',
      }),
      author: z.string().optional().meta({ description: 'Ignored, so that you can send back what you read' }),
    }),
    example: {
      routing: 'triages GitHub issues',
      session: { provider: 'a2a', url: 'https://triage.example.com', connection: 'triage-agent' },
    },
    responses: { 200: Configuration },
  }),
  deleteConfiguration: route({
    method: 'DELETE',
    path: '/api/v1/configurations/{name}',
    right: 'automations:write',
    summary: 'Deletes a configuration that no automation names',
    params: nameParams,
    query: RevisionQuery,
    responses: { 200: z.object({ deleted: z.string() }) },
  }),
};
