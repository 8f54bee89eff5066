import type { Commit } from '../../../lambdas/run/commit.ts';
import { QUARANTINE_MS } from '../../../lambdas/run/lease.ts';
import type { Receipt } from '../../../lambdas/run/receipt.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import { receiptKeyOf, type Step } from '../../../lambdas/run/step.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import type { TargetRequest } from '../environment/simulated-targets.ts';
import { isWrite } from './governed-writes.ts';
import { TERMINAL } from './lifecycle-table.ts';
import type { Report } from './report.ts';
import type { Snapshot } from './run-history.ts';

/** Writes are undone newest first, only if they are ours and unchanged, and every write has an entry in the log. */
export class RollbackInvariants {
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  /** When a step's write was done, by run and step. */
  readonly #doneAt = new Map<string, string>();
  /** The writes that were undone, by key and time of their intent. */
  readonly #reversed = new Set<string>();
  /** The same by run that made the write and key: its receipt may be replaced later, because an undo frees the key. */
  readonly #reversedOf = new Set<string>();
  /** The fields of an incident that an invocation read last. */
  readonly #lastRead = new Map<string, Record<string, string>>();

  constructor(report: Report, store: MemoryRunStore) {
    this.#report = report;
    this.#store = store;
  }

  committed(before: Snapshot, { run, steps }: Snapshot, commit: Commit | undefined): void {
    if (!run || (before.run && TERMINAL.has(before.run.status))) return;
    for (const step of steps) {
      const was = before.steps.find(({ index }) => index === step.index);
      if (step.status !== was?.status && (step.status === 'succeeded' || mayHaveWritten(step)))
        this.#doneAt.set(keyOf(run, step.index), run.updatedAt);
      if (step.undoes !== undefined && step !== was) this.#checkRetry(run, step);
    }
    for (const event of commit?.events ?? []) {
      if (event.type === 'write.reversed') this.#checkReversed(run, event.receiptKey);
      const undo = event.type === 'write.intended' && steps.find(({ id }) => id === event.step);
      if (undo && undo.undoes !== undefined) this.#checkUndo(before, run, undo, undo.undoes);
    }
    if (TERMINAL.has(run.status)) this.#checkLog(run, steps);
  }

  /** Two runs may share an identical write: then neither may undo it alone. */
  #checkReversed({ tenant, runId }: Run, receiptKey: string): void {
    const receipt = this.#store.inside.receipt(tenant, receiptKey);
    if (receipt?.outcome !== 'reversed') {
      this.#report('a write that is undone has a reversed receipt', `${receiptKey} is ${receipt?.outcome}`);
    }
    const write = `${tenant} ${receiptKey} ${receipt?.intentAt}`;
    this.#reversedOf.add(`${tenant} ${receipt?.runId} ${receiptKey}`);
    if (this.#reversed.has(write)) this.#report('a write is undone at most once', `${receiptKey}, again by ${runId}`);
    this.#reversed.add(write);
    for (const other of this.#store.inside.runs()) {
      if (other.tenant !== tenant || other.runId === runId) continue;
      // The steps of an ended run stay as they were, although another run has undone their writes since.
      if (other.rolledBackBy !== undefined || Object.values(other.resolution?.writes ?? {}).includes('happened'))
        continue;
      const steps = this.#store.inside.steps(tenant, other.runId);
      if (steps.some((step) => step.status === 'succeeded' && step.receiptKey === receiptKey)) {
        this.#report(
          'a write that another run reuses is not undone',
          `${runId} undid a write that ${other.runId} reuses`,
        );
      }
    }
  }

  /** A deadline ends a run but not its rollback, which waits for the whole quarantine. */
  #checkRetry(run: Run, undo: Step): void {
    const receipt = this.#receiptOf(run, undo);
    if (undo.status !== 'failed_retryable' || receipt?.outcome !== 'unknown') return;
    if (Date.parse(undo.retryAt) < Date.parse(receipt.intentAt) + QUARANTINE_MS) {
      this.#report('an undo waits out its quarantine', `${run.runId}/${undo.id}`);
    }
  }

  #checkUndo(before: Snapshot, run: Run, undo: Step, undoes: number): void {
    const what = `${run.runId}/${undo.id}`;
    if (run.status !== 'rolling_back') this.#report('only a run that rolls back undoes writes', what);
    const all = this.#writesOf(run, before.steps);
    const undone = all.find(({ index }) => index === undoes);
    const receipt = undone && this.#receiptOf(run, undone);
    const writer = run.rollbackOf?.runId ?? run.runId;
    const isOurs = receipt?.outcome === 'succeeded' || (undone && mayHaveWritten(undone));
    if (receipt?.runId !== writer || !isOurs) {
      this.#report('a run undoes only its own writes', `${what}, ${receipt?.outcome} of ${receipt?.runId}`);
    }
    const logged = new Set(run.compensation?.map(({ step }) => step));
    const newer = all.filter(
      (step) =>
        wrote(step) && step.status !== 'rolled_back' && !logged.has(step.id) && this.#isLater(run, step, undoes),
    );
    if (newer.length > 0) this.#report('the newest write is undone first', `${what} before ${newer[0]?.id}`);
  }

  /** The steps whose writes this run undoes: its own, or some of the ended run that it rolls back. */
  #writesOf({ tenant, rollbackOf }: Run, steps: readonly Step[]): readonly Step[] {
    if (!rollbackOf) return steps;
    return this.#store.inside.steps(tenant, rollbackOf.runId).filter(({ id }) => rollbackOf.steps.includes(id));
  }

  #isLater(run: Run, step: Step, than: number): boolean {
    return this.#doneAtOf(run, step.index) > this.#doneAtOf(run, than);
  }

  #doneAtOf({ tenant, runId, rollbackOf }: Run, index: number | undefined): string {
    return this.#doneAt.get(keyOf({ tenant, runId: rollbackOf?.runId ?? runId }, index)) ?? '';
  }

  /** A run that was rolled back or canceled has a result for each of its writes, newest first. */
  #checkLog(run: Run, own: readonly Step[]): void {
    const steps = run.rollbackOf ? [...this.#writesOf(run, own), ...own] : own;
    const log = run.compensation ?? [];
    const stopped = run.status === 'canceled' || run.rollback !== undefined;
    const isLost = (step: Step) => step.status === 'failed_terminal' && step.error.code === 'AGENT_LOST';
    const unknown = (step: Step) =>
      (step.status === 'canceled' || isLost(step)) && step.undoes === undefined && this.#isOpen(run, step);
    const written = stopped ? steps.filter((step) => wrote(step) || unknown(step)) : [];
    const missing = written.filter(({ id }) => log.filter(({ step }) => step === id).length !== 1);
    if (missing.length > 0 || log.length !== written.length) {
      this.#report('the compensation log is complete', `${run.runId}, ${missing[0]?.id ?? 'too much'}`);
    }
    // A canceled run first logs the commands whose outcome is unknown, and then what remains. It undoes none of them.
    const isLeft = (step: Step, outcome: string) =>
      outcome === 'unknown' && isLost(step) && !steps.some(({ undoes }) => undoes === step.index);
    const done = log.filter(({ step: id, outcome }) =>
      steps.some((step) => step.id === id && wrote(step) && !isLeft(step, outcome)),
    );
    const order = done.map(({ step }) => this.#doneAtOf(run, steps.find(({ id }) => id === step)?.index));
    if (order.some((at, index) => index > 0 && at > (order[index - 1] ?? ''))) {
      const each = done.map(({ step, outcome }, place) => `${step} ${outcome} ${order[place]}`);
      this.#report('the compensation log is newest first', `${run.runId}: ${each.join(', ')}`);
    }
    for (const { step: id, outcome } of log) {
      const step = steps.find((each) => each.id === id);
      const undoneElsewhere = run.rollbackOf && step && this.#isReversed(run, run.rollbackOf.runId, step);
      const undo = steps.find(({ undoes }) => undoes === step?.index);
      // A failed command stays failed, although its rollback has undone what it changed.
      const ranRollback = step !== undefined && mayHaveWritten(step) && undo?.status === 'succeeded';
      const reversed = step?.status === 'rolled_back' || undoneElsewhere === true || ranRollback;
      if (outcome === 'kept' && undo && this.#isOpen(run, undo)) {
        this.#report(
          'the compensation log matches the receipts',
          `${run.runId}/${id} may have been undone, but the log says that it remains`,
        );
      }
      const receipt = step && this.#receiptOf(run, step);
      if (
        (outcome === 'reversed') !== reversed ||
        (reversed && receipt?.runId === run.runId && receipt.outcome !== 'reversed' && receipt.outcome !== 'failed')
      ) {
        this.#report(
          'the compensation log matches the receipts',
          `${run.runId}/${id} is ${step?.status}, the log says ${outcome}`,
        );
      }
    }
  }

  /** It is unknown whether its write was made. */
  #isOpen(run: Run, step: Step): boolean {
    const receipt = this.#receiptOf(run, step);
    return receipt?.outcome === 'unknown' && receipt.runId === run.runId && receipt.stepIndex === step.index;
  }

  /** After the undo, another run may make the identical write, with a new receipt under the same key. */
  #isReversed(run: Run, writer: string, step: Step): boolean {
    const isUndone = this.#reversedOf.has(`${run.tenant} ${writer} ${receiptKeyOf(step)}`);
    const receipt = this.#receiptOf(run, step);
    return receipt?.outcome === 'reversed' || (isUndone && receipt?.runId !== writer);
  }

  #receiptOf({ tenant }: Run, step: Step): Receipt | undefined {
    return this.#store.inside.receipt(tenant, receiptKeyOf(step) ?? '');
  }

  handled({ by, method, url }: TargetRequest, fields: Record<string, string> | undefined): void {
    if (method === 'GET' && fields) this.#lastRead.set(`${by.id} ${url.pathname}`, { ...fields });
  }

  /** An invocation sends a write with expected values only after it has read these values, or the written ones. */
  sent({ by, method, url, body }: TargetRequest): void {
    if (method !== 'PATCH' || !body || 'work_notes' in body) return;
    const steps = this.#store.inside.steps(by.tenant, by.runId ?? '');
    const sysId = url.pathname.split('/').at(-1) ?? '';
    const step = steps.find(
      ({ status, governed, expects }) =>
        expects &&
        status === 'running' &&
        governed?.request.action.target.endsWith(sysId) &&
        JSON.stringify(governed.request.action.fields) === JSON.stringify(body),
    );
    if (!step?.expects) return;
    const read = this.#lastRead.get(`${by.id} ${url.pathname}`);
    for (const [field, expected] of Object.entries(step.expects)) {
      if (read?.[field] === expected || read?.[field] === body[field]) continue;
      this.#report(
        'a value that somebody else changed is not undone',
        `${by.runId}/${step.id} expects ${field} ${expected}, read ${read?.[field]}`,
      );
    }
  }
}

const keyOf = ({ tenant, runId }: Pick<Run, 'tenant' | 'runId'>, index: number | undefined) =>
  `${tenant} ${runId} ${index}`;

/** A command that failed or was lost, and has a rollback. */
const mayHaveWritten = (step: Step): boolean => step.status === 'failed_terminal' && step.mayHaveWritten === true;

/** Its write was made, by this run or earlier by another run with the identical write. */
function wrote(step: Step): boolean {
  const done = step.status === 'succeeded' || step.status === 'rolled_back';
  const made =
    (done && !('madeByStep' in step)) ||
    (step.status === 'failed_terminal' && (step.wrote === true || mayHaveWritten(step)));
  return made && step.undoes === undefined && receiptKeyOf(step) !== undefined && isWrite(step.tool);
}
