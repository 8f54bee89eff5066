import { newOutboxEntry, type StartApproval, startWithReminder } from '../../lambdas/outbox/outbox.ts';
import type { Approval } from '../../lambdas/run/approval.ts';
import { recordedError } from '../../lambdas/run/errors.ts';
import { later } from '../../lambdas/run/lease.ts';
import type { LogEntry } from '../../lambdas/run/log-entry.ts';
import { type IntentReceipt, RECEIPT_SCHEMA_VERSION, type Receipt } from '../../lambdas/run/receipt.ts';
import { isTerminal, type Run, type RunStatus } from '../../lambdas/run/run.ts';
import type { EvidenceRecord, RunStore } from '../../lambdas/run/run-store.ts';
import { type RunningStep, STEP_SCHEMA_VERSION } from '../../lambdas/run/step.ts';
import { ChangeDraft } from '../contracts/run-store/change-draft.ts';
import { everythingDue } from '../fakes/everything-due.ts';
import type { MemoryRunStore } from '../fakes/memory/memory-run-store.ts';
import { accepted, requestedApproval } from '../fakes/story.ts';
import type { SeededRandom } from './environment/seeded-random.ts';

/** An operation that can be run on two run stores. Results without an order are sorted. */
export interface Operation {
  name: string;
  run(store: RunStore): Promise<unknown>;
}

const BY = { initiator: 'system', actor: 'differential' } as const;
const STATUSES: readonly RunStatus[] = ['queued', 'running', 'canceled'];
const SLOTS = [0, 1].flatMap((shard) => ['first', 'second'].map((workspace) => ({ shard, workspace })));

/**
 * Operations on few runs, keys and counters, so that they conflict: with right and wrong expectations, new and stale. The
 * next operation depends on the current rows of the memory store.
 */
export class RandomOperations {
  readonly #random: SeededRandom;
  readonly #known: MemoryRunStore;
  readonly #tenant: string;
  /** Each sequence has its own time, earlier than the sequence before: rows of others are never due here. */
  readonly #at: string;
  readonly #runIds: string[];
  readonly #earlier: Run[] = [];
  #operations = 0;

  constructor(random: SeededRandom, known: MemoryRunStore, tenant: string, at: string) {
    this.#random = random;
    this.#known = known;
    this.#tenant = tenant;
    this.#at = at;
    // Run ids are unique across tenants, as those of the system are: an outbox entry is found by its run's id alone.
    this.#runIds = ['a', 'b', 'c'].map((each) => `run_${each}_${tenant}`);
  }

  next(): Operation {
    this.#operations += 1;
    const makers = [this.#ingest, this.#commit, this.#commit, this.#commit, this.#commit, this.#lease];
    const others = [this.#read, this.#list, this.#outboxEntries, this.#approvals, this.#cards];
    return this.#random.pick([...makers, ...others]).call(this);
  }

  #now(): string {
    return later(this.#at, this.#operations * 1_000);
  }

  #ingest(): Operation {
    const runId = this.#random.pick(this.#runIds);
    const at = this.#now();
    const expiresAt = later(at, this.#random.pick([3_000, 60_000]));
    const key = `github:${this.#random.pick(['one', 'two', 'three'])}`;
    const { ingest } = accepted({ tenant: this.#tenant, runId, key, at, expiresAt, dueAt: later(at, 5_000) });
    const [own] = ingest.records;
    const burst = own && this.#random.chance(0.5) ? [{ ...own, key: 'github:burst', expiresAt: later(at, 5_000) }] : [];
    const records = [...ingest.records, ...burst];
    return { name: `ingest ${key} ${runId}`, run: (store) => store.ingest({ ...ingest, records }) };
  }

  /** A run as it is, or an earlier version: then the commit must lose. */
  #someRun(): Run {
    const now = this.#known.inside.run(this.#tenant, this.#random.pick(this.#runIds));
    if (now) this.#earlier.push(now);
    const known = now && !this.#random.chance(0.15) ? now : this.#random.pick(this.#earlier);
    return known ?? accepted({ tenant: this.#tenant, runId: `run_nobody_${this.#tenant}`, at: this.#at }).run;
  }

  #commit(): Operation {
    const run = this.#someRun();
    const draft = new ChangeDraft(run, this.#now());
    const parts: string[] = [];
    const maybe = (part: string, chance: number, add: () => void) => {
      if (!this.#random.chance(chance)) return;
      // The draft of an ended run refuses them.
      if (isTerminal(run) && ['step', 'approval', 'due'].includes(part)) return;
      parts.push(part);
      add();
    };
    maybe('step', 0.5, () => {
      const step = this.#step();
      const was = this.#known.inside.steps(run.tenant, run.runId).find(({ index }) => index === step.index);
      const leaseVersion = (was?.leaseVersion ?? 0) + 1;
      draft.writeStep({ ...step, leaseVersion }, was?.leaseVersion);
    });
    maybe('receipt', 0.5, () => {
      const receipt = this.#receipt(run);
      // The stored receipt, or one that was never stored.
      const asRead = this.#known.inside.receipt(this.#tenant, receipt.key) ?? receipt;
      draft.writeReceipt(receipt, this.#random.pick(['free', 'ours', { asRead }, { asRead: receipt }]));
    });
    maybe('approval', 0.3, () => draft.writeApproval(this.#approval(run), this.#random.pick(['new', 1, 2] as const)));
    maybe('slot', 0.4, () => {
      const slot = this.#random.pick(SLOTS);
      draft.cap(
        this.#random.chance(0.6)
          ? { kind: 'take_slot', slot, max: this.#random.between(1, 3) }
          : { kind: 'return_slot', slot },
      );
    });
    maybe('start', 0.2, () =>
      draft.cap({ kind: 'count_start', minute: this.#at.slice(0, 16), max: this.#random.between(1, 4) }),
    );
    maybe('key', 0.3, () =>
      draft.cap({ kind: this.#random.pick(['take_key', 'release_key']), key: 'k', runId: run.runId }),
    );
    maybe('due', 0.3, () => draft.note({ dueAt: this.#random.pick([undefined, later(this.#now(), 2_000)]) }));
    maybe('enqueue', 0.3, () => draft.enqueue(this.#entry(run)));
    maybe('announce', 0.2, () => draft.enqueue(this.#announcement(this.#approval(run, 'requested'))));
    maybe('end', 0.15, () => !isTerminal(run) && draft.move('canceled', BY));
    const change = draft.seal();
    return {
      name: `commit ${run.runId} after ${run.seq} with ${parts.join(', ')}`,
      run: (store) => store.commit(change),
    };
  }

  #lease(): Operation {
    const { tenant, runId } = this.#someRun();
    const [step, until] = [this.#step(), later(this.#now(), 60_000)];
    return { name: `renew ${runId}/${step.index}`, run: (store) => store.renewLease(tenant, runId, step, until) };
  }

  #read(): Operation {
    const { tenant, runId } = this.#someRun();
    const query = { after: this.#random.between(0, 3), limit: this.#random.between(1, 5) };
    return this.#random.pick<Operation>([
      { name: `load ${runId}`, run: (store) => store.load(tenant, runId) },
      { name: `commits of ${runId}`, run: (store) => store.listCommits(tenant, runId, query) },
      {
        name: 'receipts',
        run: async (store) =>
          (await store.receipts(tenant, ['x', 'y', 'z', 'x'])).sort((a, b) => (a.key < b.key ? -1 : 1)),
      },
      { name: `approval of ${runId}`, run: (store) => store.approval(tenant, runId, approvalIdOf(runId)) },
      { name: `read token of ${runId}`, run: (store) => store.taskToken(tenant, runId, approvalIdOf(runId)) },
      { name: `evidence of ${runId}`, run: (store) => store.evidence(tenant, runId) },
    ]);
  }

  #list(): Operation {
    const tenant = this.#tenant;
    const now = later(this.#now(), this.#random.pick([0, 60_000]));
    const status = this.#random.pick(STATUSES);
    return this.#random.pick<Operation>([
      { name: 'list', run: async (store) => (await store.listRuns(tenant, { limit: 10 })).items.map(idOf).sort() },
      {
        name: `list ${status}`,
        run: async (store) => (await store.listRuns(tenant, { status, limit: 10 })).items.map(idOf).sort(),
      },
      {
        name: 'pending approvals',
        run: async (store) => (await store.pendingApprovals(tenant, { limit: 10 })).items.map(idOf).sort(),
      },
      {
        name: 'waiting line',
        run: async (store) => {
          const { waiting, running } = await store.waitingLine(tenant, 10, 2);
          // A counter of 0 and a missing counter are the same.
          const counted = Object.entries(running).filter(([, count]) => count !== 0);
          return { waiting: waiting.map(idOf).sort(), running: Object.fromEntries(counted) };
        },
      },
      {
        name: 'due',
        run: async (store) => {
          const due = (await everythingDue(store, now, 500)).filter((item) => item.tenant === tenant);
          return due.map((item) => JSON.stringify(item)).sort();
        },
      },
      {
        name: 'postpone',
        run: async (store) => {
          const due = (await everythingDue(store, now)).filter((item) => item.tenant === tenant);
          const runs = due.filter((item) => item.kind === 'run').sort((a, b) => (a.runId < b.runId ? -1 : 1));
          return runs[0] && store.postponeRun(runs[0], later(now, 2_000));
        },
      },
    ]);
  }

  #outboxEntries(): Operation {
    const run = this.#someRun();
    const { tenant, runId } = run;
    const attempts = this.#random.between(0, 2);
    const entry = { ...this.#entry(run), attempts };
    const dueAt = later(this.#now(), this.#random.pick([0, 4_000]));
    const record = { documentKey: 'd', envelopeKey: 'e', sha256: this.#now(), sizeBytes: 1, sealedAt: this.#now() };
    return this.#random.pick<Operation>([
      { name: `bump ${runId} at ${attempts}`, run: (store) => store.bumpOutbox(entry, dueAt) },
      {
        name: `seal ${runId}`,
        run: (store) =>
          store.completeSeal(entry.id, tenant, runId, record, { logged: logged(runId, record), outboxEntries: [] }),
      },
    ]);
  }

  #approvals(): Operation {
    const run = this.#someRun();
    const { id } = this.#entry(run);
    const read = this.#readApproval(run);
    // The token for a later revision is sometimes an earlier one.
    const waitNumber = read.revision % 2;
    return {
      name: `token ${waitNumber} ${run.runId} at ${read.revision}`,
      run: (store) =>
        store.storeTaskToken(id, read, { status: 'notified' }, { taskToken: `token ${waitNumber}`, waitNumber }),
    };
  }

  /** Operations on the outbox entry of the approval, with some of its states. */
  #cards(): Operation {
    const read = this.#readApproval(this.#someRun());
    const entry = this.#announcement(read);
    const stored = [...this.#known.inside.outbox()].find(({ id }) => id === entry.id)?.attempts;
    const attempts = this.#random.pick([0, 1, stored ?? 0]);
    const claimed = { ...entry, attempts };
    return this.#random.pick<Operation>([
      { name: `cancel start ${claimed.id}`, run: (store) => store.cancelStart(claimed.id) },
      { name: `claim ${claimed.id} at ${attempts}`, run: (store) => store.bumpOutbox(claimed, claimed.dueAt) },
      {
        name: `card ${claimed.id} at ${attempts}, ${read.revision}`,
        run: (store) => store.storeCard(claimed, read, { status: 'notified' }, startWithReminder(claimed)),
      },
    ]);
  }

  #announcement({ tenant, runId, approvalId }: Approval): StartApproval {
    const clocks = { remindAt: this.#at, slaAt: this.#at, expiresAt: this.#at };
    const action = { kind: 'start_approval', tenant, runId, approvalId, clocks, announce: true } as const;
    return newOutboxEntry(action, this.#at) as StartApproval;
  }

  #entry({ tenant, runId }: Run) {
    return newOutboxEntry({ kind: 'seal_evidence', tenant, runId }, this.#at);
  }

  #step(): RunningStep {
    const index = this.#random.between(0, 2);
    return {
      schemaVersion: STEP_SCHEMA_VERSION,
      index,
      id: `step_${index}`,
      tool: 'slack.message.post',
      leaseVersion: this.#random.between(1, 3),
      attempt: 1,
      updatedAt: this.#at,
      status: 'running',
      // A large step is stored in another way.
      input: this.#random.pick([null, null, 'large '.repeat(1_000)]),
      receiptKey: 'x',
      lease: { owner: 'lease', expiresAt: this.#at },
      startedAt: this.#at,
    };
  }

  #receipt({ tenant, runId }: Run): Receipt {
    const facts: Omit<IntentReceipt, 'outcome'> = {
      schemaVersion: RECEIPT_SCHEMA_VERSION,
      tenant,
      key: this.#random.pick(['x', 'y', 'z']),
      runId,
      stepId: 'step',
      stepIndex: this.#random.between(0, 2),
      tool: 'slack.message.post',
      effect: 'probe',
      target: 'slack:C1',
      fields: ['text'],
      requestHash: 'hash',
      attempt: 1,
      leaseVersion: this.#random.between(1, 3),
      intentAt: this.#at,
      openSince: this.#at,
    };
    const settledAt = this.#now();
    const error = recordedError('TARGET_REFUSED', 'no');
    return this.#random.pick<Receipt>([
      { ...facts, outcome: 'intent' },
      { ...facts, outcome: 'unknown', settledAt, error },
      { ...facts, outcome: 'failed', settledAt, error },
      { ...facts, outcome: 'succeeded', settledAt, output: { ts: '1' }, reversal: { irreversible: 'x' }, response: {} },
    ]);
  }

  /** Often as it is stored, so that the revision is right. */
  #readApproval(run: Run): Approval {
    const read = this.#approval(run, 'requested');
    const stored = this.#known.inside.approval(run.tenant, run.runId, read.approvalId)?.revision;
    return this.#random.chance(0.5) ? { ...read, revision: stored ?? read.revision } : read;
  }

  #approval({ tenant, runId }: Run, status?: Approval['status']): Approval {
    return requestedApproval(
      { tenant, runId },
      {
        approvalId: approvalIdOf(runId),
        status: status ?? this.#random.pick(['requested', 'notified', 'expired', 'canceled'] as const),
        revision: this.#random.pick([1, 2, 3]),
        requestedAt: this.#at,
      },
    );
  }
}

const logged = (runId: string, { sealedAt }: EvidenceRecord): LogEntry => ({
  runId,
  sha256: '0'.repeat(64),
  head: '0'.repeat(64),
  count: 1,
  sealedAt,
});
/** One for each run, so that operations on it conflict. */
const approvalIdOf = (runId: string) => `${runId}.2-0`;
const idOf = ({ runId }: { runId: string }) => runId;
