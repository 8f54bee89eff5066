import type { Commit, StepWrite } from '../commit.ts';
import { CLOCK_SKEW_MS, LEASE_DURATION_MS, later } from '../lease.ts';
import { type ActiveRun, isTerminal, type Run, type RunStatus } from '../run.ts';
import { DUE_TIME_STEP_MS, dueTimeStep } from '../run-store.ts';
import type { Step } from '../step.ts';
import { commitRow, docOf, type Item, keyOf, PACKED, toItem } from './dynamo-items.ts';
import * as keys from './dynamo-keys.ts';

/**
 * How the state of a run is stored in rows. DynamoDB bills rows, so a commit is one row with the steps that it changes, and the row
 * of the run is written only if necessary (`needsRunRow`). The newest row counts: the state of a step is in the last commit that
 * contains it; number, hash and time of the run are those of its last commit.
 */
export interface StoredCommit extends Commit {
  /** The steps as this commit left them, without those that are too large. */
  steps?: Step[];
  /** The indexes of the others. Each has a row of its own, with the number of this commit. */
  stepsInRows?: number[];
  /** What has changed in the run, if its row was not written. */
  run?: Progress;
}

/** Fields of a run that change with almost every commit, and that nothing but the state of the run depends on. */
type Progress = Pick<ActiveRun, 'currentStep' | 'dueAt' | 'writes'>;

/** A larger step has a row of its own, so that reading all commits of a run stays cheap and the row of a commit fits. */
const STEP_IN_COMMIT_MAX_BYTES = 4 * 1024;
/** The attribute of a step's row with the number of its commit. Rows of earlier versions have none: they are older. */
const OF_COMMIT = 'ofCommit';

/** The rows of a commit and its steps. */
export function commitItems(
  run: Run,
  commit: Commit,
  writes: readonly StepWrite[],
  progress: Progress | undefined,
): Item[] {
  const { tenant, runId } = run;
  const isSmall = ({ step }: StepWrite) => Buffer.byteLength(JSON.stringify(step)) <= STEP_IN_COMMIT_MAX_BYTES;
  const [small, large]: [StepWrite[], StepWrite[]] = [[], []];
  for (const write of writes) (isSmall(write) ? small : large).push(write);
  const stored: StoredCommit = {
    ...commit,
    ...(small.length > 0 && { steps: small.map(({ step }) => step) }),
    ...(large.length > 0 && { stepsInRows: large.map(({ step }) => step.index) }),
    ...(progress && { run: progress }),
  };
  return [
    commitRow(run, commit, stored),
    ...large.map(({ step }) =>
      toItem(keys.stepKey(tenant, runId, step.index), step, { ...PACKED, [OF_COMMIT]: commit.seq }),
    ),
  ];
}

/** The commit without the other contents of its row: steps have values that readers of commits may not see. */
export const commitOf = (item: Item): Commit => commitIn(docOf(item));

const commitIn = ({ seq, prevHash, at, events, hash }: StoredCommit): Commit => ({ seq, prevHash, at, events, hash });

export function progressOf(run: Run): Progress {
  const { writes } = run;
  if (isTerminal(run)) return { writes };
  const { currentStep, dueAt } = run;
  return { writes, ...(currentStep !== undefined && { currentStep }), ...(dueAt !== undefined && { dueAt }) };
}

/**
 * Lists, indexes, the sweeper and conditions read the row of the run and no commit. So it is written whenever a field of it
 * changes that is not `Progress`, and when the time changes at which the sweeper must find it, and when that time has come:
 * the sweeper, whose clock may be ahead, may have postponed it. A run that waits, perhaps for days, gets its row with every
 * commit, because the hourly lists of open runs prove its head. A run in motion gets a new time with each claim, so its row is
 * never older than a lease.
 */
export function needsRunRow(before: Run, after: Run): boolean {
  // A writer that has read a later commit than the first knows that the run exists.
  if (before.seq === 1 || isTerminal(before) || isTerminal(after) || !IN_MOTION.includes(after.status)) return true;
  if (before.dueAt === undefined || after.dueAt === undefined) return true;
  if (before.dueAt <= later(after.updatedAt, CLOCK_SKEW_MS)) return true;
  // Due later than a lease: it waits. A rollback does so without another status, until people have approved an undo.
  if (after.dueAt > later(after.updatedAt, LEASE_DURATION_MS + DUE_TIME_STEP_MS)) return true;
  return dueTimeStep(before.dueAt) !== dueTimeStep(after.dueAt) || !hasSameLasting(before, after);
}

const IN_MOTION: readonly RunStatus[] = ['running', 'rolling_back'];

/** Fields that the last commit has, too. */
const IN_COMMITS: readonly string[] = ['seq', 'headHash', 'updatedAt', 'currentStep', 'dueAt', 'writes'];

/** A change replaces only the fields that it changes, so most values are the same object. */
function hasSameLasting(before: ActiveRun, after: ActiveRun): boolean {
  const [was, is] = [before, after] as unknown as [Record<string, unknown>, Record<string, unknown>];
  const isSame = (name: string) =>
    was[name] === is[name] || IN_COMMITS.includes(name) || JSON.stringify(was[name]) === JSON.stringify(is[name]);
  return Object.keys(is).every(isSame) && Object.keys(was).every((name) => name in is || isSame(name));
}

/** Whether a lease was renewed, or taken from its holder. Only then it has a row. */
interface StoredLease {
  leaseVersion: number;
  status: 'held' | 'taken';
  expiresAt?: string;
}

export function leaseItem(tenant: string, runId: string, index: number, lease: StoredLease): Item {
  return toItem(keys.leaseKey(tenant, runId, index), lease);
}

/** Puts the state of a run together from its rows, in the order of their keys: commits, leases, the run, steps. */
export class StoredRun {
  #last?: StoredCommit;
  #run?: Run;
  readonly #steps = new Map<number, { step: Step; ofCommit: number }>();
  /** The last commit that says that a step has a row of its own. */
  readonly #stepsInRows = new Map<number, number>();
  readonly #leases = new Map<number, StoredLease>();
  /** The steps that `takeOut` has not returned yet. */
  #lastFirst?: number[];

  take(item: Item): void {
    const { sk } = keyOf(item);
    if (sk.startsWith(keys.COMMIT_PREFIX)) this.takeCommit(docOf(item));
    else if (sk.startsWith(keys.LEASE_PREFIX)) this.#leases.set(keys.indexOfStep(sk), docOf(item));
    else if (sk.startsWith(keys.STEP_PREFIX)) this.#takeStep(docOf(item), Number(item[OF_COMMIT]?.N ?? 0));
    else if (sk === keys.RUN_SORT_KEY) this.#run = docOf(item);
  }

  takeCommit(commit: StoredCommit): Commit {
    if (!this.#last || this.#last.seq < commit.seq) this.#last = commit;
    for (const step of commit.steps ?? []) this.#takeStep(step, commit.seq);
    for (const index of commit.stepsInRows ?? []) {
      this.#stepsInRows.set(index, Math.max(commit.seq, this.#stepsInRows.get(index) ?? 0));
    }
    return commitIn(commit);
  }

  #takeStep(step: Step, ofCommit: number): void {
    const known = this.#steps.get(step.index);
    if (!known) this.#lastFirst?.push(step.index);
    if (!known || known.ofCommit < ofCommit) this.#steps.set(step.index, { step, ofCommit });
  }

  /** The rows are not those of one commit: the run was changed while it was read, and must be read again. */
  get isTorn(): boolean {
    const [run, last] = [this.#run?.seq ?? 0, this.#last?.seq ?? 1];
    const steps = [...this.#steps.values()].map(({ ofCommit }) => ofCommit);
    const rowsAreLater = Math.max(run, ...steps) > last;
    const runIsEarlier = this.#run !== undefined && run < last && this.#last?.run === undefined;
    const stepIsEarlier = [...this.#stepsInRows].some(([index, seq]) => (this.#steps.get(index)?.ofCommit ?? 0) < seq);
    return rowsAreLater || runIsEarlier || stepIsEarlier;
  }

  get run(): Run | undefined {
    const [run, last] = [this.#run, this.#last];
    if (!run || !last || last.seq <= run.seq) return run;
    const { seq, hash: headHash, at: updatedAt, run: progress } = last;
    if (!progress) return run;
    const { currentStep: _step, dueAt: _due, ...rest } = run as ActiveRun;
    return { ...rest, ...progress, seq, headHash, updatedAt };
  }

  /** By index. */
  get steps(): Step[] {
    const steps = [...this.#steps.keys()].sort((a, b) => a - b);
    return steps.flatMap((index) => this.step(index) ?? []);
  }

  /** Removes and returns the steps up to this index, in order. Rows of steps are taken after all commits, in order, too. */
  *takeOut(upTo: number): Generator<Step> {
    this.#lastFirst ??= [...this.#steps.keys()].sort((a, b) => b - a);
    const lastFirst = this.#lastFirst;
    for (let index = lastFirst.at(-1); index !== undefined && index <= upTo; index = lastFirst.at(-1)) {
      const step = this.step(index);
      lastFirst.pop();
      this.#steps.delete(index);
      if (step) yield step;
    }
  }

  step(index: number): Step | undefined {
    const step = this.#steps.get(index)?.step;
    const { leaseVersion, expiresAt } = this.#leases.get(index) ?? {};
    if (step?.status !== 'running' || step.leaseVersion !== leaseVersion) return step;
    const isRenewed = expiresAt !== undefined && expiresAt > step.lease.expiresAt;
    return isRenewed ? { ...step, lease: { ...step.lease, expiresAt } } : step;
  }
}
