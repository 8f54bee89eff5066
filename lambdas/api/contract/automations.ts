import * as z from 'zod';
import { Automation as AutomationDefinition } from '../../pipeline/definitions.ts';
import { WEBHOOK_SOURCES } from '../../run/run.ts';
import { route } from './route.ts';
import { json, PageQuery, page } from './schemas.ts';

const Automation = z.object({
  name: z.string(),
  description: z.string().optional(),
  enabled: z.boolean(),
  workspace: z.string(),
  trigger: z.discriminatedUnion('source', [
    z.object({
      source: z.enum(WEBHOOK_SOURCES),
      event: z.string().meta({ example: 'issues.opened' }),
      filter: z.string().optional(),
    }),
    z.object({ source: z.literal('manual') }),
  ]),
  workflow: z.object({ name: z.string(), version: z.int() }),
  inputs: json<Record<string, unknown>>('Values for the inputs of the workflow').optional(),
});
Automation.register(z.globalRegistry, { id: 'Automation' });

const nameParams = z.object({ name: z.string() });

export const automationRoutes = {
  listAutomations: route({
    method: 'GET',
    path: '/api/v1/automations',
    right: 'automations:read',
    summary: 'Lists automations, by name',
    query: PageQuery,
    responses: { 200: page('automations', Automation) },
  }),
  getAutomation: route({
    method: 'GET',
    path: '/api/v1/automations/{name}',
    right: 'automations:read',
    summary: 'Returns an automation',
    params: nameParams,
    responses: { 200: Automation },
  }),
  saveAutomation: route({
    method: 'PUT',
    path: '/api/v1/automations/{name}',
    right: 'automations:write',
    summary: 'Creates or replaces an automation',
    params: z.object({ name: AutomationDefinition.shape.name }),
    // The path names the automation. A name in the body must be the same.
    body: AutomationDefinition.extend({ name: z.string().optional() }),
    example: {
      trigger: { source: 'github', event: 'issues.labeled', filter: "{% trigger.payload.label.name = 'duplicate' %}" },
      workflow: { name: 'close-duplicates', version: 1 },
    },
    responses: { 200: Automation.extend({ effectiveWithinSeconds: z.number() }) },
  }),
};
