import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { answerRuns } from '../../lambdas/api/runs-api.ts';
import type { HttpEvent } from '../../lambdas/entry/http.ts';
import type { StepMessage } from '../../lambdas/worker/step-queue.ts';
import { ALLOWED } from '../fakes/fake-policy.ts';
import { ASSIGN, GovernedWorkshop } from '../worker/governed-workshop.ts';
import { SYS_ID } from '../worker/workshop.ts';

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
  const api = { runs: shop.runs, definitions: shop.definitions, cursorSecret: async () => 'secret' };
  return JSON.parse((await answerRuns(api, event)).body ?? '');
}

it('a run shows every approval it asked for, also one that was closed before the next was opened', async () => {
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

it('a run that rolled back shows its undo steps behind the others, and what became of each write', async () => {
  shop.policy.decision = () => ALLOWED;
  const message = await shop.begin(`
name: failing
onFailure: rollback
steps:
  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { assignment_group: network } } }
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
