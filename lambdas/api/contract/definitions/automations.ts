import * as z from 'zod';
import {
  Automation as AutomationDefinition,
  type AutomationDefinition as Definition,
} from '../../../pipeline/automation.ts';
import { WEBHOOK_SOURCES } from '../../../run/run.ts';
import { Caps } from '../../../run/settings/caps.ts';
import { route } from '../route.ts';
import { json, PageQuery, page } from '../schemas.ts';

const Trigger = z.discriminatedUnion('source', [
  z.object({
    source: z.enum(WEBHOOK_SOURCES),
    event: z.string().meta({ example: 'issues.opened' }),
    filter: z.string().optional(),
  }),
  z.object({ source: z.literal('manual') }),
]);

export const Destination = z.discriminatedUnion('type', [
  z.object({ type: z.literal('slack_channel'), channel: z.string() }),
  z.object({ type: z.literal('slack_dm_user'), person: z.string() }),
]);

const Automation = z.object({
  name: z.string(),
  description: z.string().optional(),
  enabled: z.boolean(),
  workspace: z.string(),
  trigger: Trigger.meta({ description: 'The first of `triggers`, for earlier clients' }),
  triggers: z.array(Trigger),
  workflow: z
    .object({ name: z.string(), version: z.int() })
    .meta({ description: 'With `instructions`: the workflow that was made from them' }),
  instructions: z.string().optional(),
  session: json<NonNullable<Definition['session']>>('What the session may use and propose').optional(),
  inputs: json<Record<string, unknown>>('Values for the inputs of the workflow').optional(),
  notifications: z.array(Destination).meta({ description: 'Where people are notified when a run ends' }),
  connections: z
    .array(z.string())
    .optional()
    .meta({ description: 'The only connections that its runs may use. Without it, all' }),
  caps: Caps.optional(),
  configuration: z
    .discriminatedUnion('strategy', [
      z.object({ strategy: z.literal('fixed'), default: z.string() }),
      z.object({
        strategy: z.literal('agent_decide'),
        allow: z.array(z.string()),
        fallback: z.string().optional(),
        default: z.string().optional(),
      }),
    ])
    .optional(),
  model: z.string().optional(),
});
Automation.register(z.globalRegistry, { id: 'Automation' });

const nameParams = z.object({ name: z.string() });
const Saved = Automation.extend({ effectiveWithinSeconds: z.number() });

const toggle = <const Command extends 'enable' | 'disable'>(command: Command, summary: string) =>
  route({
    method: 'POST',
    path: `/api/v1/automations/{name}/${command}`,
    right: 'automations:control',
    summary,
    params: nameParams,
    responses: { 200: Saved },
  });

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
      triggers: [
        { source: 'github', event: 'issues.labeled', filter: "{% trigger.payload.label.name = 'duplicate' %}" },
      ],
      workflow: { name: 'close-duplicates', version: 1 },
      notifications: [{ type: 'slack_channel', channel: 'C0OPS' }],
    },
    responses: { 200: Saved },
  }),
  deleteAutomation: route({
    method: 'DELETE',
    path: '/api/v1/automations/{name}',
    right: 'automations:write',
    summary: 'Deletes an automation that no schedule uses. Its runs stay',
    params: nameParams,
    responses: { 200: z.object({ deleted: z.string() }) },
  }),
  enableAutomation: toggle('enable', 'Enables an automation'),
  disableAutomation: toggle('disable', 'Disables an automation. Runs that it started continue'),
};
