import * as z from 'zod';
import { StageEnvironment } from '../entry/tenant-secrets.ts';
import { TelemetryEnvironment } from '../telemetry/environment.ts';

/** To notify people: the tenant's Slack, and its alerting. */
const NotifyingEnvironment = {
  RUN_TABLE: z.string(),
  ...StageEnvironment,
  /** Messages link to its pages. A stage may have no console. */
  CONSOLE_URL: z.url().optional(),
};

export const WaitForDecisionEnvironment = z.object({
  ...NotifyingEnvironment,
  STEP_QUEUE_URL: z.string(),
  APPROVAL_QUEUE_URL: z.string(),
  ...TelemetryEnvironment,
});

export const PublishDecisionEnvironment = z.object(NotifyingEnvironment);

export const ExpireEnvironment = z.object({ STEP_QUEUE_URL: z.string() });

/** Notify people, remind them when half of the time has passed, alert others when all of it has passed. */
export const ESCALATION_STAGES = ['notify', 'remind', 'escalate'] as const;
export type EscalationStage = (typeof ESCALATION_STAGES)[number];
