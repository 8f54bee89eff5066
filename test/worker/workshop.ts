import { noHints } from '../../lambdas/agents/agent-registry.ts';
import { isoNow } from '../../lambdas/entry/ports.ts';
import { sealAddendum } from '../../lambdas/evidence/addendum/seal-addendum.ts';
import { sealRun } from '../../lambdas/evidence/bundle/seal-run.ts';
import type { Exports } from '../../lambdas/evidence/export/export-run.ts';
import { TextArchive } from '../../lambdas/pipeline/text-archive.ts';
import { readShippedPolicies } from '../../lambdas/policy/shipped-policies.ts';
import type { Commit } from '../../lambdas/run/commit.ts';
import type { Receipt } from '../../lambdas/run/receipt.ts';
import { isTerminal, type Run } from '../../lambdas/run/run.ts';
import { receiptKeyOf, type Step } from '../../lambdas/run/step.ts';
import type { StepMessage } from '../../lambdas/run-changes/step-queue.ts';
import { fireSchedule } from '../../lambdas/schedules/fire-schedule.ts';
import { sweep } from '../../lambdas/sweep/sweep.ts';
import { executorFor } from '../../lambdas/worker/5-executor.ts';
import { processRun } from '../../lambdas/worker/process-run.ts';
import type { Worker } from '../../lambdas/worker/worker.ts';
import { parseWorkflow } from '../../lambdas/workflow/parse-workflow.ts';
import { assertChain } from '../fakes/assert-chain.ts';
import { CountingIds } from '../fakes/counting-ids.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { FakePolicy } from '../fakes/fake-policy.ts';
import { MemoryConnections } from '../fakes/memory/memory-connections.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';
import { MemoryEvidenceStore } from '../fakes/memory/memory-evidence-store.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';
import { MemoryOutbox } from '../fakes/memory/memory-outbox.ts';
import { MemoryRunStore } from '../fakes/memory/memory-run-store.ts';
import { MemoryStepQueue } from '../fakes/memory/memory-step-queue.ts';
import { OwnThreadExpressions } from '../fakes/own-thread-expressions.ts';
import { type Passage, undisturbed } from '../fakes/passage.ts';
import { SeededSigner } from '../fakes/seeded-signer.ts';
import { type AcceptedOptions, accepted } from '../fakes/story.ts';
import { FakeTargets } from '../fakes/targets/fake-targets.ts';

export const SYS_ID = '1'.repeat(32);
export const ISSUE = 'octo-org/payments#7';
const TENANT = 'acme';
export const SESSION_SECRET = 'signs the tokens of sessions';

/** Not a divisor of the lease: a worker takes a run over some time after the lease has ended. */
const LOOKS_EVERY_MS = 45_000;
const PROBES_MAX = 400;

export interface RunNow {
  run: Run;
  steps: Step[];
  commits: Commit[];
  receipts: Receipt[];
  /** Its evidence is recorded. */
  sealed: boolean;
}

/** A worker with fakes of all its ports, on one clock; `disturb` sets the faults of its calls. */
export class Workshop {
  readonly clock = new FakeClock();
  readonly log = new MemoryLog();
  readonly definitions = new MemoryDefinitions();
  readonly evidence = new MemoryEvidenceStore((name, run) => this.#passage(name, run));
  readonly exports: Exports = {
    store: new MemoryEvidenceStore(),
    artifacts: new MemoryEvidenceStore(),
    wanted: ['siem'],
  };
  readonly textStore = new MemoryEvidenceStore();
  readonly texts = new TextArchive({
    store: this.textStore,
    definitions: this.definitions,
    shipped: readShippedPolicies,
    log: this.log,
  });
  readonly signer = new SeededSigner();
  readonly policy = new FakePolicy();
  readonly runs = new MemoryRunStore((name, run) => this.#passage(name, run));
  readonly queue = new MemoryStepQueue(this.clock, (name, run) => this.#passage(name, run));
  readonly outbox = new MemoryOutbox((name, run) => this.#passage(name, run));
  readonly outside = new FakeTargets(this.clock, (name, run) => this.#passage(name, run));
  readonly worker: Worker;
  #passage: Passage = undisturbed;
  #runs = 0;

  constructor(differing: Partial<Worker> = {}) {
    this.outside.incidents.set(SYS_ID, { fields: { category: '', state: '1', number: 'INC1' }, workNotes: [] });
    this.outside.issueLabels.set(ISSUE, ['bug']);
    this.outside.channels.set('#incidents', []);
    this.worker = {
      runs: this.runs,
      definitions: this.definitions,
      policy: this.policy,
      environment: 'dev',
      connections: new MemoryConnections({ [TENANT]: this.outside.access() }),
      expressions: new OwnThreadExpressions(() => this.clock.now()),
      queue: this.queue,
      outbox: this.outbox,
      clock: this.clock,
      ids: new CountingIds(),
      random: () => 0.5,
      every: () => () => {},
      log: this.log,
      timeLeftMs: () => 30_000,
      executorFor,
      agents: this.runs.agents,
      hints: noHints,
      assignmentSigner: this.signer,
      sessionSecret: async () => SESSION_SECRET,
      ownUrl: 'https://api.example',
      ...differing,
    };
  }

  disturb(passage: Passage): void {
    this.#passage = passage;
  }

  /** A run of this workflow, accepted now; its message is for the caller to deliver. */
  async begin(yaml: string, options: AcceptedOptions = {}): Promise<StepMessage> {
    const workflow = parseWorkflow(yaml, 'test.yaml');
    await this.definitions.publishWorkflow(TENANT, workflow, 1);
    return this.beginPublished(workflow.name, options);
  }

  /** A run of a workflow that is published already. */
  async beginPublished(workflow: string, options: AcceptedOptions = {}): Promise<StepMessage> {
    this.#runs += 1;
    const runId = `run_${this.#runs.toString(16).padStart(8, '0')}`;
    const at = isoNow(this.clock);
    const { ingest } = accepted({ tenant: TENANT, runId, at, workflow, ...options });
    await this.runs.ingest(ingest);
    return { tenant: TENANT, runId };
  }

  work(message: StepMessage): Promise<void> {
    return processRun(this.worker, message);
  }

  /** The stored run; checks its chain. No fault applies to this read. */
  async now(message: StepMessage): Promise<RunNow> {
    const passage = this.#passage;
    this.#passage = undisturbed;
    try {
      return await this.#look(message);
    } finally {
      this.#passage = passage;
    }
  }

  async #look({ tenant, runId }: StepMessage): Promise<RunNow> {
    const loaded = await this.runs.load(tenant, runId);
    if (!loaded) throw new Error(`there is no run ${runId}`);
    const commits = await this.runs.listCommits(tenant, runId, { after: 0, limit: 1_000 });
    assertChain(loaded.run, commits);
    const keys = loaded.steps.flatMap((step) => receiptKeyOf(step) ?? []);
    const sealed = (await this.runs.evidence(tenant, runId)) !== undefined;
    return { ...loaded, commits, receipts: await this.runs.receipts(tenant, keys), sealed };
  }

  /** Advances the clock and runs workers, sealer and sweeper until this run has ended and its evidence is recorded. */
  async finish(message: StepMessage): Promise<RunNow> {
    for (let look = 0; look < PROBES_MAX; look += 1) {
      await this.#workThroughMessages();
      const now = await this.now(message);
      if (isTerminal(now.run) && now.sealed) return now;
      this.clock.advance(LOOKS_EVERY_MS);
      await this.sweep();
    }
    throw new Error(`the run did not finish: ${JSON.stringify(await this.now(message))}`);
  }

  /** One sweep; the sweeper may crash like any function. */
  sweep(): Promise<void> {
    // `begin` counts its own runs.
    const ids = { next: (prefix: string) => `${prefix}_5c${this.worker.ids.next('').slice(1)}` };
    const firer = { ...this.worker, ids, definitions: this.definitions, schedules: this.runs.schedules };
    const fire = (due: Parameters<typeof fireSchedule>[1]) => fireSchedule(firer, due);
    const hasTime = { hasTimeToRead: () => true, hasTimeToSend: () => true };
    return survived(async () => {
      const { tenants } = await sweep({ ...this.worker, tenants: ['acme'], fireSchedule: fire, ...hasTime });
      for (const [tenant, swept] of Object.entries(tenants)) {
        await this.runs.recordSweep(tenant, { at: isoNow(this.clock), ...swept });
      }
    });
  }

  async #workThroughMessages(): Promise<void> {
    for (let due = this.queue.receive(); due.length > 0; due = this.queue.receive()) {
      // A function that failed, or died, is no concern of the others; its message comes again by the sweeper.
      for (const message of due) await survived(() => this.work(message));
    }
    for (const seal of this.outbox.receiveSeals()) {
      const { runs, evidence: store, exports, texts, signer, clock, log } = this;
      const sealer = { runs, store, exports, texts, signer, clock, log };
      const { seq, kind, entryId } = seal;
      if (kind === 'store_output') {
        await survived(() => runs.completeOutboxEntry(entryId));
        continue;
      }
      await survived(() => (seq === undefined ? sealRun(sealer, seal) : sealAddendum(sealer, { ...seal, seq })));
    }
  }
}

let notice = () => {};

/** A call that never returns, as in a killed process. */
export function die<T>(): Promise<T> {
  notice();
  return new Promise(() => {});
}

/** Waits until a process has ended, failed or been killed. */
export async function survived(process: () => Promise<unknown>): Promise<void> {
  const { promise: killed, resolve } = Promise.withResolvers<void>();
  notice = resolve;
  await Promise.race([process().catch(() => undefined), killed]);
}

export const eventTypes = ({ commits }: RunNow): string[] =>
  commits.flatMap(({ events }) => events.map(({ type }) => type));

export const statuses = ({ commits }: RunNow): string[] =>
  commits.flatMap(({ events }) => events.flatMap((event) => (event.type === 'run.status_changed' ? [event.to] : [])));
