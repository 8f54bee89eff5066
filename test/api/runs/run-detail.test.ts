import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { handleRuns } from '../../../lambdas/api/runs/runs.ts';
import type { HttpEvent } from '../../../lambdas/entry/http.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { outputPorts } from '../../fakes/memory/memory-output.ts';
import { ASSIGN, GovernedWorkshop } from '../../worker/governance/governed-workshop.ts';
import { SYS_ID } from '../../worker/workshop.ts';

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

async function detail({ tenant, runId }: StepMessage) {
  const event = {
    routeKey: 'GET /api/v1/runs/{id}',
    pathParameters: { id: runId },
    requestContext: { authorizer: { lambda: { tenant, person: 'olivia', role: 'owner' } } },
  } as unknown as HttpEvent;
  const api = {
    runs: shop.runs,
    definitions: shop.definitions,
    cursorSecret: async () => 'secret',
    ...outputPorts(shop.clock),
  };
  return JSON.parse((await handleRuns(api, event)).body ?? '');
}

it('a run shows every approval it requested, also one that was closed before the next was opened', async () => {
  const { message, approval } = await shop.upToGate(ASSIGN('onReject: pause'));
  expect((await detail(message)).approvals).toMatchObject([{ approvalId: approval.approvalId, votes: [] }]);
  await shop.say(approval, 'ben', { kind: 'reject', reason: 'not now' });
  await shop.command(message, { kind: 'retry' });
  await shop.work(message);
  const { approvals } = await detail(message);
  expect(approvals).toMatchObject([
    { approvalId: approval.approvalId, status: 'rejected', votes: [{ person: 'ben', reason: 'not now' }] },
    { status: 'requested' },
  ]);
  for (const storage of ['schemaVersion', 'tenant', 'revision']) expect(approvals[0]).not.toHaveProperty(storage);
});

it('a run that rolled back shows its undo steps after the others, and the outcome of each write', async () => {
  shop.policy.decision = () => ALLOWED;
  const message = await shop.begin(`
name: failing
onFailure: rollback
steps:
  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { category: network } } }
  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [triage] } }
  - { id: gone, tool: servicenow.incident.update, with: { sysId: "${'f'.repeat(32)}", fields: { state: "6" } } }
`);
  await shop.finish(message);
  const { steps, receipts, rollback, compensation, approvals } = await detail(message);
  expect(steps.map(({ id, status }: { id: string; status: string }) => `${id} ${status}`)).toEqual([
    'assign rolled_back',
    'label rolled_back',
    'gone failed_terminal',
    'undo_label succeeded',
    'undo_assign succeeded',
  ]);
  expect(rollback).toMatchObject({ endsAs: 'failed_terminal' });
  expect(compensation).toMatchObject([
    { step: 'label', outcome: 'reversed' },
    { step: 'assign', outcome: 'reversed' },
  ]);
  expect(receipts.map(({ stepId }: { stepId: string }) => stepId)).toContain('undo_label');
  expect(approvals).toEqual([]);
});

it('a run shows its current step, the time and output of each step, and how often it was resumed', async () => {
  shop.policy.decision = () => ALLOWED;
  const message = await shop.begin(`
name: waits
steps:
  - { id: rest, tool: wait, with: { seconds: 90 } }
  - { id: facts, tool: transform, with: { answer: 42 } }
`);
  await shop.work(message);
  expect(await detail(message)).toMatchObject({
    currentStep: 'rest',
    result: null,
    resumeCount: 0,
    cancellation: null,
  });
  await shop.command(message, { kind: 'pause' });
  await shop.command(message, { kind: 'resume' });
  shop.clock.advance(90_000);
  await shop.work(message);
  const shown = await detail(message);
  expect(shown).toMatchObject({ status: 'succeeded', currentStep: null, result: { answer: 42 }, resumeCount: 1 });
  expect(shown.steps).toMatchObject([
    { id: 'rest', startedAt: shown.startedAt, completedAt: shown.completedAt, durationMs: 90_000 },
    { id: 'facts', startedAt: shown.completedAt, completedAt: shown.completedAt, durationMs: 0 },
  ]);
});

it('a step keeps its start over its attempts', async () => {
  shop.policy.decision = () => ALLOWED;
  const message = await shop.begin(ASSIGN());
  shop.outside.next('PATCH servicenow', { status: 429, retryAfterSeconds: 100 });
  await shop.work(message);
  const { startedAt } = (await detail(message)).steps[0];
  expect((await detail(message)).currentStep).toBe('assign');
  shop.clock.advance(100_000);
  await shop.work(message);
  expect((await detail(message)).steps).toMatchObject([{ status: 'succeeded', startedAt, durationMs: 100_000 }]);
});

it('a canceled run shows who canceled it, when and why', async () => {
  const { message } = await shop.upToGate(ASSIGN());
  const at = new Date(shop.clock.now()).toISOString();
  await shop.command(message, { kind: 'cancel', reason: 'duplicate' });
  const shown = await detail(message);
  expect(shown).toMatchObject({ status: 'canceled', cancellation: { actor: 'oscar', reason: 'duplicate', at } });
  expect(shown.steps).toMatchObject([{ status: 'canceled', durationMs: 0 }]);
});
