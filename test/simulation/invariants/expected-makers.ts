import type { Commit } from '../../../lambdas/run/commit.ts';

interface MakersOfRun {
  /** Makers of all later writes of the run, each with the commit that made them so. */
  duringRun: { person: string; seq: number }[];
  /** Makers of one step: people who edited its payload, or retried it after it had failed. */
  toStep: Map<number, Set<string>>;
  /** The commit that fixed the values of a step. */
  proposedIn: Map<number, number>;
  /** Steps that have failed permanently. */
  failed: Set<number>;
  /** The ended run whose writes it undoes. */
  rolledBack?: string;
}

/** The makers of each write, computed from the commits as the design says, without the engine's code. */
export class ExpectedMakers {
  readonly #runs = new Map<string, MakersOfRun>();

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

  #of(runId: string): MakersOfRun {
    const known = this.#runs.get(runId);
    if (known) return known;
    const run = { duringRun: [], toStep: new Map(), proposedIn: new Map(), failed: new Set<number>() };
    this.#runs.set(runId, run);
    return run;
  }
}

const indexIn = (approvalId: string): number => Number(approvalId.split('-').at(-1));

function add({ toStep }: MakersOfRun, index: number, person: string): void {
  toStep.set(index, (toStep.get(index) ?? new Set()).add(person));
}
