import type { AppliedPlan, Trigger } from '../run/run.ts';
import type { StartedAutomation } from '../run-changes/new-run.ts';

/** After this time a plan must be made again. */
export const PLAN_VALID_MS = 24 * 60 * 60 * 1000;

/** A plan that can be applied: what it was made from, and what its run may write. */
export interface SavedPlan {
  plan: AppliedPlan;
  automation: StartedAutomation;
  trigger: Trigger;
  subject?: string;
  inputs?: Record<string, unknown>;
  savedBy: string;
  plannedAt: string;
  expiresAt: string;
}

export interface PlanStore {
  savePlan(tenant: string, saved: SavedPlan): Promise<void>;
  savedPlan(tenant: string, planHash: string): Promise<SavedPlan | undefined>;
}
