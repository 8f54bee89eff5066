import type { Commit } from '../../../lambdas/run/commit.ts';

interface Contributed {
  /** Who gave the run something, and with which commit. */
  duringRun: { person: string; seq: number }[];
  /** The makers of an attempt at one step: people who edited its payload, or had it retried after it had failed. */
  toStep: Map<number, Set<string>>;
  /** The commit with which a step's values were fixed. */
  proposedIn: Map<number, number>;
  /** Steps that have failed for good. */
  failed: Set<number>;
  /** The ended run whose writes it undoes. */
  rolledBack?: string;
}

/** Who has put something into what a run writes, as its commits show: by the design, not by the engine's code. */
export class Contributions {
  readonly #runs = new Map<string, Contributed>();

  committed(runId: string, { seq, events }: Commit): void {
    const run = this.#of(runId);
    for (const event of events) {
      if (event.type === 'step.signaled') run.duringRun.push({ person: event.actor, seq });
      if (event.type === 'run.rolls_back') {
        run.rolledBack = event.runId;
        run.duringRun.push({ person: event.actor, seq });
      }
      if (event.type === 'run.stop_requested' && event.kind === 'rollback') {
        run.duringRun.push({ person: event.actor, seq });
      }
      if (event.type === 'policy.decided' && !run.proposedIn.has(event.index)) run.proposedIn.set(event.index, seq);
      if (event.type === 'step.failed') run.failed.add(event.index);
      if (event.type === 'step.retry_requested' && run.failed.delete(event.index)) add(run, event.index, event.actor);
      if (event.type === 'approval.edited') add(run, indexIn(event.approvalId), event.person);
    }
  }

  /** The makers of what a step writes, and of undoing it: also those of the step that it undoes. */
  to(runId: string, index: number, undoes?: number): Set<string> {
    const { duringRun, toStep, proposedIn, rolledBack = runId } = this.#of(runId);
    const fixedIn = proposedIn.get(index) ?? Number.POSITIVE_INFINITY;
    return new Set([
      ...duringRun.filter(({ seq }) => seq < fixedIn).map(({ person }) => person),
      ...(toStep.get(index) ?? []),
      ...(undoes === undefined ? [] : this.to(rolledBack, undoes)),
    ]);
  }

  #of(runId: string): Contributed {
    const known = this.#runs.get(runId);
    if (known) return known;
    const run = { duringRun: [], toStep: new Map(), proposedIn: new Map(), failed: new Set<number>() };
    this.#runs.set(runId, run);
    return run;
  }
}

const indexIn = (approvalId: string): number => Number(approvalId.split('-').at(-1));

function add({ toStep }: Contributed, index: number, person: string): void {
  toStep.set(index, (toStep.get(index) ?? new Set()).add(person));
}
