import type { PlanStore, SavedPlan } from '../../../lambdas/plan/plan-store.ts';
import { copy } from './memory-rows.ts';

export class MemoryPlanStore implements PlanStore {
  readonly #plans = new Map<string, SavedPlan>();

  async savePlan(tenant: string, saved: SavedPlan): Promise<void> {
    this.#plans.set(`${tenant}/${saved.plan.planHash}`, copy(saved));
  }

  async savedPlan(tenant: string, planHash: string): Promise<SavedPlan | undefined> {
    return copy(this.#plans.get(`${tenant}/${planHash}`));
  }
}
