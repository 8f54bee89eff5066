import * as z from 'zod';
import { GenericSource } from '../../../pipeline/generic-source.ts';
import { route } from '../route.ts';
import { PageQuery, page } from '../schemas.ts';

const Source = z.object({
  name: z.string(),
  description: z.string().optional(),
  enabled: z.boolean(),
  title: z.string(),
  subject: z.string().optional(),
  actor: z.string().optional(),
  event: z.string().optional(),
  id: z.string().optional(),
  author: z.string().optional().meta({
    description: 'Who last changed how it reads events. They cannot approve the writes that its events start',
  }),
  path: z
    .string()
    .meta({ description: 'Where the source sends its webhooks', example: '/webhooks/generic/acme/alerts' }),
  secretEntry: z.string().meta({ description: "The entry of the tenant's webhook-signing secret with its secrets" }),
});

const nameParams = z.object({ name: z.string() });

export const sourceRoutes = {
  listSources: route({
    method: 'GET',
    path: '/api/v1/sources',
    right: 'automations:read',
    summary: 'Lists webhook sources, by name',
    query: PageQuery,
    responses: { 200: page('sources', Source) },
  }),
  getSource: route({
    method: 'GET',
    path: '/api/v1/sources/{name}',
    right: 'automations:read',
    summary: 'Returns a webhook source',
    params: nameParams,
    responses: { 200: Source },
  }),
  saveSource: route({
    method: 'PUT',
    path: '/api/v1/sources/{name}',
    right: 'automations:write',
    summary: 'Creates or replaces a webhook source',
    params: z.object({ name: GenericSource.shape.name }),
    // The path names the source. A name in the body must be the same.
    body: GenericSource.extend({ name: z.string().optional() }),
    responses: { 200: Source.extend({ effectiveWithinSeconds: z.number() }) },
  }),
  deleteSource: route({
    method: 'DELETE',
    path: '/api/v1/sources/{name}',
    right: 'automations:write',
    summary: 'Deletes a webhook source that no automation uses',
    params: nameParams,
    responses: { 200: z.object({ deleted: z.string() }) },
  }),
};
