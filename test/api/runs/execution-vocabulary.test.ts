import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  APPROVAL_TASK_STATE,
  EXECUTION_EVENTS,
  executionEventsOf,
  STEP_STATE,
} from '../../../lambdas/api/runs/execution-vocabulary.ts';
import { type Waiting, waitForDecision } from '../../../lambdas/approval/wait-for-decision.ts';
import type { CommitEvent } from '../../../lambdas/run/events/events.ts';
import { EXECUTION_STATE } from '../../../lambdas/run/statuses/execution-state.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { ASSIGN, GovernedWorkshop } from '../../worker/governance/governed-workshop.ts';
import { SYS_ID } from '../../worker/workshop.ts';

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop({ environment: 'prod' }).open();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

async function eventNames(message: StepMessage): Promise<string[]> {
  const { commits } = await shop.now(message);
  return commits.flatMap(({ events }) => events.flatMap(executionEventsOf));
}

const ESCALATION: Omit<Waiting, 'tenant' | 'runId' | 'approvalId'> = {
  entryId: 'outbox_1',
  escalationStage: 'escalate',
  taskToken: 'token',
  retryCount: 0,
};
const CARDS = {
  post: async () => undefined,
  find: async () => undefined,
  update: async () => {},
  remind: async () => {},
  escalate: async () => {},
  alert: async () => {},
};

describe('in the vocabulary of source 001', () => {
  it('an approval in prod is expired after 10 minutes, while it is still open (4.3)', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN());
    expect(Date.parse(approval.slaAt) - Date.parse(approval.requestedAt)).toBe(600_000);
    shop.clock.advance(600_000);
    const { tenant, runId, approvalId } = approval;
    await waitForDecision({ ...shop.worker, cards: CARDS }, { ...ESCALATION, tenant, runId, approvalId });
    const { run, commits } = await shop.now(message);
    expect(commits.at(-1)?.events).toMatchObject([{ type: 'approval.overdue' }]);
    expect(EXECUTION_STATE[run.status]).toBe('waiting_for_approval');
    expect(await eventNames(message)).toEqual([
      'session.created',
      'session.assigned',
      'approval.requested',
      'approval.expired',
    ]);
  });

  it('an approval that nobody decided for 24 hours is resolved, not expired a second time', async () => {
    const { message } = await shop.upToGate(ASSIGN());
    shop.clock.advance(86_400_000);
    await shop.work(message);
    expect(await eventNames(message)).toEqual([
      ...['session.created', 'session.assigned', 'approval.requested'],
      ...['approval.resolved', 'execution.step.failed', 'session.failed'],
    ]);
  });

  it('a run that rolls back reports the start and the end of it', async () => {
    shop = await new GovernedWorkshop().open();
    vi.stubGlobal('fetch', shop.outside.fetch);
    shop.policy.decision = () => ALLOWED;
    const message = await shop.begin(`
name: failing
onFailure: rollback
steps:
  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { category: network } } }
  - { id: gone, tool: servicenow.incident.update, with: { sysId: "${'f'.repeat(32)}", fields: { state: "6" } } }
`);
    await shop.finish(message);
    expect((await eventNames(message)).slice(-6)).toEqual([
      'execution.step.failed',
      'execution.rollback.started',
      ...['execution.step.started', 'execution.step.completed'],
      ...['execution.rollback.completed', 'session.failed'],
    ]);
  });

  it.each([
    ['approval.overdue', 'approval.expired'],
    ['approval.escalated', 'approval.expired'],
    ['approval.expired', 'approval.resolved'],
    ['approval.canceled', 'approval.resolved'],
  ])('%s is %s', (type, name) => {
    expect(executionEventsOf({ type, step: 'a', approvalId: 'run_1.2-0' } as CommitEvent)).toEqual([name]);
  });

  it('every state is one of its states', () => {
    const states = ['queued', 'assigning_worker', 'waiting_for_approval', 'executing', 'paused', 'rollback'];
    for (const state of Object.values(EXECUTION_STATE))
      expect([...states, 'completed', 'failed', 'cancelled']).toContain(state);
    const steps = ['pending', 'awaiting_approval', 'approved', 'running', 'succeeded', 'failed', 'rolled_back'];
    for (const state of Object.values(STEP_STATE)) expect(steps).toContain(state);
    const tasks = ['pending', 'notified', 'approved', 'rejected', 'expired'];
    for (const state of Object.values(APPROVAL_TASK_STATE)) expect(tasks).toContain(state);
    expect(new Set(EXECUTION_EVENTS).size).toBe(14);
  });
});
