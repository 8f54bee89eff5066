import * as z from 'zod';
import { TenantSettings } from '../../run/caps.ts';
import { route } from './route.ts';

const Settings = z.object({
  caps: z.object({
    maxConcurrency: z.int().optional(),
    maxRunsPerMinute: z.int().optional(),
    maxWritesPerRun: z.int().optional(),
  }),
  workspaces: z.record(z.string(), z.int()),
  counterShards: z.int().meta({ description: 'Read only: the operator of the stage changes it' }),
  features: z
    .object({
      'worker_orchestration.enabled': z
        .boolean()
        .meta({ description: '`false`: no commands are assigned to agents, and those in flight are canceled' }),
    })
    .optional()
    .meta({ description: 'Parts of the product that the tenant has switched on or off; by default all are on' }),
  approvalsChannel: z.string().optional(),
  overdueDigestMinutes: z.int().optional().meta({
    description: 'Overdue approvals that are still open are listed again in Slack after this many minutes; default 60',
  }),
  issuers: z
    .array(z.object({ name: z.string(), issuer: z.string(), audience: z.string(), clientId: z.string().optional() }))
    .optional()
    .meta({ description: 'Only owners change them, and not in a prod stage, whose issuers are in cdk.json' }),
});

export const settingsRoutes = {
  getSettings: route({
    method: 'GET',
    path: '/api/v1/settings',
    right: 'settings:read',
    summary: 'Returns the settings of the tenant',
    responses: { 200: Settings },
  }),
  saveSettings: route({
    method: 'PUT',
    path: '/api/v1/settings',
    right: 'settings:write',
    summary: 'Replaces the settings of the tenant',
    body: TenantSettings.omit({ counterShards: true }),
    responses: { 200: Settings.extend({ effectiveWithinSeconds: z.number() }) },
  }),
};
