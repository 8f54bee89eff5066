import { expect } from 'vitest';
import type { Approval } from '../../../lambdas/run/approval.ts';
import { recordedError } from '../../../lambdas/run/errors.ts';
import { later } from '../../../lambdas/run/lease.ts';
import { type IntentReceipt, RECEIPT_SCHEMA_VERSION, type Receipt } from '../../../lambdas/run/receipt.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import type { DueItem, EvidenceRecord, RunStore } from '../../../lambdas/run/run-store.ts';
import { type RunningStep, STEP_SCHEMA_VERSION } from '../../../lambdas/run/step.ts';
import { everythingDue } from '../../fakes/everything-due.ts';
import { STORY_BEGINS_AT as AT } from '../../fakes/fake-clock.ts';
import { type AcceptedOptions, accepted, requestedApproval } from '../../fakes/story.ts';
import { ChangeDraft } from './change-draft.ts';

export const BY = { initiator: 'system', actor: 'contract' } as const;
export const MINUTE_MS = 60_000;

/** A store under test. Each test has its own tenants and runs, so all tests share one table. */
export class RunStoreBench {
  readonly #store: () => RunStore;
  #tenants = 0;
  #runs = 0;

  constructor(store: () => RunStore) {
    this.#store = store;
  }

  get store(): RunStore {
    return this.#store();
  }

  readonly newTenant = () => {
    this.#tenants += 1;
    return `tenant-${this.#tenants}`;
  };

  readonly newRunId = () => {
    this.#runs += 1;
    return `run_${this.#runs.toString(16).padStart(8, '0')}`;
  };

  /** A worker gives a run its title when it starts it. */
  readonly begin = async ({ title, ...options }: AcceptedOptions = {}): Promise<Run> => {
    const { run, ingest } = accepted({ tenant: this.newTenant(), runId: this.newRunId(), ...options });
    expect(await this.store.ingest(ingest)).toEqual({ outcome: 'created' });
    if (title === undefined) return run;
    const titled = this.change(run, run.createdAt)
      .note({ enrichment: { title, links: [] } })
      .seal();
    expect(await this.store.commit(titled)).toEqual({ outcome: 'committed' });
    return titled.run;
  };

  readonly loaded = async ({ tenant, runId }: Run) => {
    const found = await this.store.load(tenant, runId);
    if (!found) throw new Error(`run ${runId} is not there`);
    return found;
  };

  readonly change = (run: Run, at = later(AT, MINUTE_MS)) => new ChangeDraft(run, at);

  readonly cancel = (run: Run, at?: string) => this.change(run, at).move('canceled', BY).seal();

  readonly dueRuns = async (now: string, tenant: string) =>
    (await this.dueItems(now)).flatMap((item) => (item.kind === 'run' && item.tenant === tenant ? [item.runId] : []));

  readonly dueEntries = async (now: string, tenant: string) => {
    const items = (await this.dueItems(now)).filter((item) => item.tenant === tenant);
    return this.store.outboxEntries(items.flatMap((item) => (item.kind === 'outbox' ? [item.entryId] : [])));
  };

  readonly dueItems = (now: string): Promise<DueItem[]> => everythingDue(this.store, now);
}

export function held(index: number, leaseVersion = 0): RunningStep {
  return {
    schemaVersion: STEP_SCHEMA_VERSION,
    index,
    id: `step_${index}`,
    tool: 'github.labels.add',
    leaseVersion,
    attempt: 0,
    updatedAt: AT,
    status: 'running',
    input: { number: 7 },
    receiptKey: 'key',
    lease: { owner: 'lease_1', expiresAt: later(AT, MINUTE_MS) },
    startedAt: AT,
  };
}

export function intent({ tenant, runId }: Run, differing: Partial<IntentReceipt> = {}): IntentReceipt {
  return {
    schemaVersion: RECEIPT_SCHEMA_VERSION,
    tenant,
    key: 'key',
    runId,
    stepId: 'label',
    stepIndex: 0,
    tool: 'github.labels.add',
    effect: 'natural',
    target: 'github:octo-org/payments#7',
    fields: ['labels'],
    requestHash: 'hash-of-the-fields',
    attempt: 1,
    leaseVersion: 1,
    intentAt: AT,
    openSince: AT,
    outcome: 'intent',
    ...differing,
  };
}

export const succeeded = (receipt: IntentReceipt): Receipt => ({
  ...receipt,
  outcome: 'succeeded',
  settledAt: AT,
  output: { labels: ['triage'] },
  reversal: { irreversible: 'a test' },
  response: { status: 200 },
});

export const failed = (receipt: IntentReceipt, outcome: 'failed' | 'unknown'): Receipt => ({
  ...receipt,
  outcome,
  settledAt: AT,
  error: recordedError('TARGET_REFUSED', 'no'),
});

export const requested = (run: Run, differing: Partial<Approval> = {}): Approval =>
  requestedApproval(run, { requestedAt: AT, ...differing });
export const CLOCKS = { remindAt: AT, slaAt: AT, expiresAt: AT };

export const besides = {
  logged: { runId: 'run_1', sha256: '0'.repeat(64), head: '0'.repeat(64), count: 2, sealedAt: AT },
  outboxEntries: [],
};

export const evidenceRecord = (name: string): EvidenceRecord => ({
  documentKey: `${name}/bundle.json`,
  envelopeKey: `${name}/bundle.dsse.json`,
  sha256: name,
  sizeBytes: 1,
  sealedAt: AT,
});
