import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { toolNames } from '../../lambdas/connectors/registry.ts';
import { recordedError } from '../../lambdas/run/errors.ts';
import { later, leaseTimesOf } from '../../lambdas/run/lease.ts';
import type { RunningStep } from '../../lambdas/run/step.ts';
import { controlRun } from '../../lambdas/run-changes/control/control-run.ts';
import type { StepMessage } from '../../lambdas/run-changes/step-queue.ts';
import { type Executor, executorFor, type StepOutcome } from '../../lambdas/worker/5-executor.ts';
import { type OutcomeReport, reportOutcome } from '../../lambdas/worker/6-report-outcome.ts';
import type { ClaimedStep } from '../../lambdas/worker/worker.ts';
import { SYS_ID, Workshop } from './workshop.ts';

const LEASE = { durationMs: 30_000, renewalMs: 10_000, quarantineMs: 25_000 };
const NOTE_THEN_LABEL = `
name: note-then-label
steps:
  - { id: note, tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: "seen" } }
  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [triage] } }
`;
const DONE: StepOutcome = {
  kind: 'done',
  result: { output: { noteId: '1' }, reversal: { irreversible: 'a note stays' }, response: {} },
};
const UNKNOWN: StepOutcome = {
  kind: 'unknown',
  error: recordedError('OUTCOME_UNKNOWN', 'no answer'),
  retryable: true,
};

let shop: Workshop;
afterEach(() => vi.unstubAllGlobals());
let message: StepMessage;
let dispatched: ClaimedStep[];

/** Takes steps over and performs nothing: their outcomes come later, through `report`. */
const elsewhere: Executor = {
  lease: LEASE,
  async dispatch(_worker, _run, claimed) {
    dispatched.push(claimed);
    return { kind: 'dispatched' };
  },
};

beforeEach(async () => {
  dispatched = [];
  shop = new Workshop({
    executorFor: (tool) => (tool.startsWith('servicenow.') ? elsewhere : executorFor(tool)),
  });
  vi.stubGlobal('fetch', shop.outside.fetch);
  message = await shop.begin(NOTE_THEN_LABEL);
  await shop.work(message);
});

function report(changes: Partial<OutcomeReport> = {}) {
  const [{ step } = {} as ClaimedStep] = dispatched;
  const { index: stepIndex, leaseVersion } = step;
  return reportOutcome(shop.worker, { ...message, stepIndex, leaseVersion, outcome: DONE, ...changes });
}

const stepsNow = async () => (await shop.now(message)).steps.map(({ id, status }) => [id, status]);

describe('a step that another process performs', () => {
  it('is dispatched once and stays running under a lease with the times of its executor', async () => {
    expect(dispatched.map(({ step }) => step.id)).toEqual(['note']);
    const { run, steps } = await shop.now(message);
    const [note] = steps as RunningStep[];
    expect(note).toMatchObject({ id: 'note', status: 'running', leaseVersion: 1 });
    expect(Date.parse(note?.lease.expiresAt ?? '') - shop.clock.now()).toBe(LEASE.durationMs);
    expect(run).toMatchObject({ status: 'running', dueAt: note?.lease.expiresAt });
    await shop.work(message);
    expect(dispatched).toHaveLength(1);
    expect(shop.outside.incidents.get(SYS_ID)?.workNotes).toEqual([]);
  });

  it('is settled by a report under its lease, and a worker continues the run', async () => {
    expect(await report()).toMatchObject({ result: 'accepted' });
    expect(await stepsNow()).toEqual([['note', 'succeeded']]);
    const now = await shop.finish(message);
    expect(now.run.status).toBe('succeeded');
    expect(now.receipts.map(({ stepId, outcome }) => [stepId, outcome])).toEqual([
      ['note', 'succeeded'],
      ['label', 'succeeded'],
    ]);
  });

  it('is settled once: the same report again changes nothing', async () => {
    await report();
    const before = await shop.now(message);
    expect(await report()).toEqual({ result: 'duplicate' });
    expect(await report({ outcome: UNKNOWN })).toEqual({ result: 'duplicate' });
    expect(await shop.now(message)).toEqual(before);
  });

  it('is not settled under a lease that another worker has taken over', async () => {
    shop.clock.advance(LEASE.durationMs + 1);
    await shop.work(message);
    expect(dispatched.map(({ step }) => step.leaseVersion)).toEqual([1, 2]);
    const before = await shop.now(message);
    expect(await report({ leaseVersion: 1 })).toEqual({ result: 'lease_lost' });
    expect(await shop.now(message)).toEqual(before);
    expect(await report({ leaseVersion: 2 })).toMatchObject({ result: 'accepted' });
  });

  it('is not settled after its run was stopped without an outcome', async () => {
    await controlRun(shop.worker, message, { kind: 'pause' }, 'olivia');
    shop.clock.advance(LEASE.durationMs + 1);
    await shop.work(message);
    const before = await shop.now(message);
    expect(before.run.status).toBe('paused');
    expect(await report()).toEqual({ result: 'lease_lost' });
    expect(await shop.now(message)).toEqual(before);
  });

  it('waits for the quarantine of its executor when its outcome is unknown', async () => {
    await report({ outcome: UNKNOWN });
    const { steps, receipts } = await shop.now(message);
    expect(receipts).toMatchObject([{ outcome: 'unknown' }]);
    const quarantineEnds = later(receipts[0]?.intentAt ?? '', LEASE.quarantineMs);
    expect(steps).toMatchObject([{ status: 'failed_retryable', retryAt: quarantineEnds }]);
  });

  it('cannot be reported for a run or step that does not exist', async () => {
    expect(await report({ runId: 'run_0' })).toEqual({ result: 'lease_lost' });
    expect(await report({ stepIndex: 9 })).toEqual({ result: 'lease_lost' });
  });
});

it('code without an executor uses the same lease times as the executor of each tool', () => {
  for (const tool of toolNames()) expect(leaseTimesOf(tool)).toEqual(executorFor(tool).lease);
});
