import type { Run, Slot } from '../../../lambdas/run/run.ts';
import { effectiveCaps, type TenantSettings } from '../../../lambdas/run/settings/caps.ts';
import type { Workflow } from '../../../lambdas/workflow/workflow.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import { isWrite } from './governed-writes.ts';
import { TERMINAL } from './lifecycle-table.ts';
import type { Report } from './report.ts';

/** The counters of slots always match the runs, also after crashes. */
export class SlotInvariants {
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  readonly #settings: (tenant: string) => TenantSettings;
  readonly #workflow: (run: Run) => Workflow | undefined;
  /** Steps with an intent, by run. */
  readonly #writers = new Map<string, Set<string>>();
  readonly #starts = new Map<string, number>();

  constructor(
    report: Report,
    store: MemoryRunStore,
    settings: (tenant: string) => TenantSettings,
    workflow: (run: Run) => Workflow | undefined,
  ) {
    this.#report = report;
    this.#store = store;
    this.#settings = settings;
    this.#workflow = workflow;
  }

  committed(before: Run | undefined, run: Run): void {
    this.#checkCounters(run.tenant);
    this.#checkKeys(run.tenant);
    this.#checkWrites(run);
    if (run.startedAt !== undefined && before?.startedAt === undefined) this.#checkStarts(run, run.startedAt);
  }

  #checkCounters(tenant: string): void {
    const expected = new Map<string, number>();
    const count = (slot: Slot) => {
      for (const key of [counterOf(slot), `${counterOf(slot)}/${slot.workspace}`]) {
        expected.set(key, (expected.get(key) ?? 0) + 1);
      }
    };
    const running = new Map<string, number>();
    for (const run of this.#store.inside.runs()) {
      if (run.tenant !== tenant) continue;
      const workflowCap = this.#workflow(run)?.caps?.maxConcurrency;
      const capped = this.#settings(tenant).caps.maxConcurrency !== undefined;
      if (run.status === 'running') {
        if ((capped && !run.slot) || (workflowCap !== undefined && !run.workflowSlot)) {
          this.#report('a running run has a slot', run.runId);
        }
        const ofWorkflow = (running.get(run.workflow.name) ?? 0) + 1;
        running.set(run.workflow.name, ofWorkflow);
        if (workflowCap !== undefined && ofWorkflow > workflowCap) {
          this.#report('a workflow has at most as many running runs as its cap', `${run.workflow.name}: ${ofWorkflow}`);
        }
      } else if (run.slot || run.workflowSlot) this.#report('only a running run has a slot', run.runId);
      if (run.slot) count(run.slot);
      if (run.workflowSlot) count(run.workflowSlot);
    }
    let taken = 0;
    for (const counter of this.#store.inside.caps.counters()) {
      if (counter.tenant !== tenant) continue;
      const { workspaces } = counter;
      if (counter.workflow === undefined) taken += counter.running;
      const key = counterOf(counter);
      const perWorkspace: [string, number][] = Object.entries(workspaces).map(([name, value]) => [
        `${key}/${name}`,
        value,
      ]);
      for (const [each, value] of [[key, counter.running] as [string, number], ...perWorkspace]) {
        if (value === (expected.get(each) ?? 0)) continue;
        this.#report(
          'counters equal the number of runs that have a slot',
          `${each} counts ${value}, not ${expected.get(each)}`,
        );
      }
    }
    const { maxConcurrency } = this.#settings(tenant).caps;
    if (maxConcurrency !== undefined && taken > maxConcurrency) {
      this.#report('a tenant has at most as many running runs as its cap', `${taken} of ${maxConcurrency}`);
    }
  }

  #checkKeys(tenant: string): void {
    const holders = new Set(this.#store.inside.caps.holders());
    const held = new Map<string, string>();
    for (const run of this.#store.inside.runs()) {
      const ended = TERMINAL.has(run.status);
      if (ended && holders.has(run.runId)) this.#report('an ended run has released its concurrency key', run.runId);
      if (run.tenant !== tenant || ended || run.concurrencyKey === undefined) continue;
      const other = held.get(run.concurrencyKey);
      if (other) this.#report('one run at a time has a concurrency key', `${other} and ${run.runId}`);
      held.set(run.concurrencyKey, run.runId);
      if (this.#store.inside.caps.holder(tenant, run.concurrencyKey) !== run.runId) {
        this.#report('an open run has its concurrency key', run.runId);
      }
    }
  }

  #checkWrites(run: Run): void {
    const writers = this.#writers.get(run.runId) ?? new Set();
    this.#writers.set(run.runId, writers);
    for (const event of this.#store.inside.commit(run.tenant, run.runId, run.seq)?.events ?? []) {
      if (event.type === 'write.intended' && isWrite(event.tool) && !event.step.startsWith('undo_'))
        writers.add(event.step);
    }
    const { maxWritesPerRun } = this.#capsOf(run);
    if (maxWritesPerRun !== undefined && writers.size > maxWritesPerRun) {
      this.#report(
        'a run makes at most as many writes as its cap',
        `${run.runId} has begun ${writers.size} of ${maxWritesPerRun}`,
      );
    }
    if (run.writes !== writers.size) {
      this.#report('writes are counted', `${run.runId} says ${run.writes}, has begun ${writers.size}`);
    }
  }

  #checkStarts(run: Run, startedAt: string): void {
    const { maxRunsPerMinute } = this.#settings(run.tenant).caps;
    const minute = `${run.tenant} ${startedAt.slice(0, 16)}`;
    const starts = (this.#starts.get(minute) ?? 0) + 1;
    this.#starts.set(minute, starts);
    // A run that could not be enriched ends without a start.
    if (maxRunsPerMinute !== undefined && starts > maxRunsPerMinute) {
      this.#report('a minute has at most as many starts as the cap', `${starts} of ${maxRunsPerMinute} in ${minute}`);
    }
  }

  #capsOf(run: Run) {
    return effectiveCaps(this.#settings(run.tenant).caps, this.#workflow(run)?.caps);
  }
}

const counterOf = ({ shard, workflow = '' }: Pick<Slot, 'shard' | 'workflow'>) => `${workflow} ${shard}`;
