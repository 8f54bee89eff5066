import * as z from 'zod';
import { StageEnvironment } from '../entry/tenant-secrets.ts';

/** What it takes to tell people: the tenant's Slack, and whom to call when nobody answers. */
const TellingEnvironment = { RUN_TABLE: z.string(), ...StageEnvironment };

export const WaitForDecisionEnvironment = z.object({
  ...TellingEnvironment,
  STEP_QUEUE_URL: z.string(),
  APPROVAL_QUEUE_URL: z.string(),
});

export const PublishDecisionEnvironment = z.object(TellingEnvironment);

export const ExpireEnvironment = z.object({ STEP_QUEUE_URL: z.string() });

/** The rungs of the ladder: ask, remind when half the time is gone, call others when all of it is. */
export const ESCALATION_STAGES = ['notify', 'remind', 'escalate'] as const;
export type EscalationStage = (typeof ESCALATION_STAGES)[number];
