import { expect, it } from 'vitest';
import type { PlanStore, SavedPlan } from '../../lambdas/plan/plan-store.ts';

const AT = '2026-03-02T10:00:00.000Z';
const saved = (planHash: string, plannedAt = AT): SavedPlan => ({
  plan: {
    planHash,
    policyHashes: ['p'],
    writes: [{ step: 'a', tool: 't', target: 'x', fields: { known: 'hash', unknown: null }, before: { state: '1' } }],
  },
  automation: { name: 'triage', workspace: 'default', workflow: { name: 'triage', version: 2 } },
  trigger: { source: 'manual', event: 'run.requested', fields: {}, payload: { inputs: {} }, receivedAt: AT },
  savedBy: 'oscar',
  plannedAt,
  expiresAt: '2026-03-03T10:00:00.000Z',
});

/** What every store of plans does. */
export function planStoreContract(open: () => PlanStore): void {
  it('a plan is read by its hash, by its tenant only, and as it was saved last', async () => {
    const store = open();
    await store.savePlan('plans', saved('a'.repeat(64)));
    await store.savePlan('plans', saved('b'.repeat(64)));
    expect(await store.savedPlan('plans', 'a'.repeat(64))).toEqual(saved('a'.repeat(64)));
    expect(await store.savedPlan('plans', 'c'.repeat(64))).toBeUndefined();
    expect(await store.savedPlan('others', 'a'.repeat(64))).toBeUndefined();
    const again = saved('a'.repeat(64), '2026-03-02T11:00:00.000Z');
    await store.savePlan('plans', again);
    expect(await store.savedPlan('plans', 'a'.repeat(64))).toEqual(again);
  });
}
