import * as z from 'zod';
import { TenantSettings } from '../../../run/settings/caps.ts';
import { FLAG_NAMES } from '../../../run/settings/flags.ts';
import { Flags } from '../../../run/settings/flags-schema.ts';
import { route } from '../route.ts';

const Settings = z.object({
  caps: z.object({
    maxConcurrency: z.int().optional(),
    maxRunsPerMinute: z.int().optional(),
    maxWritesPerRun: z.int().optional(),
    maxActionsPerMinute: z.int().optional().meta({ description: 'Of one person or program; default 60' }),
  }),
  workspaces: z.record(z.string(), z.int()),
  counterShards: z.int().meta({ description: 'Read only: the operator of the stage changes it' }),
  features: z
    .object(Flags.shape)
    .optional()
    .meta({ description: 'Parts of the product that the tenant has switched on or off' }),
  approvalsChannel: z.string().optional(),
  slackAutomation: z.string().optional(),
  overdueDigestMinutes: z.int().optional().meta({
    description: 'Overdue approvals that are still open are listed again in Slack after this many minutes; default 60',
  }),
  issuers: z
    .array(z.object({ name: z.string(), issuer: z.string(), audience: z.string(), clientId: z.string().optional() }))
    .optional()
    .meta({ description: 'Only owners change them, and not in a prod stage, whose issuers are in cdk.json' }),
});

/** What applies now, and who set it. */
const FlagInEffect = z.object({
  name: z.enum(FLAG_NAMES),
  on: z.boolean(),
  source: z
    .enum(['tenant', 'stage', 'default'])
    .meta({ description: 'Who set it: `features` of the tenant, or of the stage' }),
  whenOff: z.string().meta({ description: 'What is different when it is off' }),
});

const SettingsInEffect = Settings.extend({
  flags: z.array(FlagInEffect).meta({ description: 'Read only: all flags as they apply; `features` changes them' }),
});

export const settingsRoutes = {
  getSettings: route({
    method: 'GET',
    path: '/api/v1/settings',
    right: 'settings:read',
    summary: 'Returns the settings of the tenant',
    responses: { 200: SettingsInEffect },
  }),
  saveSettings: route({
    method: 'PUT',
    path: '/api/v1/settings',
    right: 'settings:write',
    summary: 'Replaces the settings of the tenant',
    body: TenantSettings.omit({ counterShards: true }),
    responses: { 200: SettingsInEffect.extend({ effectiveWithinSeconds: z.number() }) },
  }),
};
