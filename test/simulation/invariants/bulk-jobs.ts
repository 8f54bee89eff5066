import type { BulkJob, BulkResult } from '../../../lambdas/api/bulk/bulk-job.ts';
import type { RunChange } from '../../../lambdas/run/commit.ts';
import type { CommitEvent } from '../../../lambdas/run/events/events.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import type { Situations } from '../situations.ts';
import type { Report } from './report.ts';

/**
 * A bulk job acts only on the runs that its preview matched, on each at most once. A job that was stopped continues where it
 * stopped, and its results say what happened.
 */
export class BulkJobInvariants {
  readonly #report: Report;
  readonly #situations: Situations;
  /** As the previews stored them, with the results so far. */
  readonly #jobs = new Map<string, BulkJob>();
  /** The job that a person has confirmed; a person confirms one. */
  readonly #confirmed = new Map<string, string>();
  readonly #tamperedWith = new Set<string>();
  readonly #acted = new Set<string>();
  /** How each run was resolved, by whomever, without the names of people. */
  readonly #resolutions = new Map<string, string>();

  constructor(report: Report, situations: Situations) {
    this.#report = report;
    this.#situations = situations;
  }

  previewed(job: BulkJob): void {
    this.#jobs.set(job.jobId, job);
  }

  confirmed(person: string, jobId: string, isTamperedWith: boolean): void {
    this.#confirmed.set(person, jobId);
    if (isTamperedWith) this.#tamperedWith.add(jobId);
  }

  committed({ run: { runId }, commit }: RunChange): void {
    // One command may retry several steps.
    const actors = new Set(commit.events.flatMap((event) => (isAction(event) ? [event.actor] : [])));
    for (const actor of actors) this.#acts(actor, runId);
    for (const event of commit.events) {
      if (event.type !== 'run.resolved') continue;
      const writes = Object.fromEntries(event.writes.map(({ step, finding }) => [step, finding]));
      this.#resolutions.set(runId, resolutionText({ ...event, writes }));
    }
  }

  created(runs: readonly Run[]): void {
    for (const { request } of runs) if (request?.rerunOf !== undefined) this.#acts(request.actor, request.rerunOf);
  }

  #acts(person: string, runId: string): void {
    const jobId = this.#confirmed.get(person);
    const job = jobId === undefined ? undefined : this.#jobs.get(jobId);
    if (!job) return;
    const what = `${job.jobId}, ${job.action} ${runId}`;
    if (!job.runs.some((each) => each.runId === runId)) {
      this.#report('a bulk job acts only on the runs of its preview', what);
    }
    if (this.#acted.has(`${person} ${runId}`)) this.#report('a bulk job acts on a run at most once', what);
    this.#acted.add(`${person} ${runId}`);
  }

  /** A request has stored its results, or another one has stored some first. */
  updated({ jobId }: BulkJob, results: BulkResult[], isStored: boolean): void {
    const job = this.#jobs.get(jobId);
    if (!job) return;
    if (!isStored) {
      this.#situations.record('two requests continue a bulk job');
      return;
    }
    if (job.results.length > 0) this.#situations.record('a bulk job is continued');
    const continues =
      results.length > job.results.length &&
      results.every(({ runId }, index) => runId === job.runs[index]?.runId) &&
      JSON.stringify(results.slice(0, job.results.length)) === JSON.stringify(job.results);
    if (!continues) this.#report('a bulk job continues where it stopped', `${jobId}: ${JSON.stringify(results)}`);
    this.#jobs.set(jobId, { ...job, results });
  }

  /** No work is left. */
  checkFinished(): void {
    for (const [person, jobId] of this.#confirmed) {
      const job = this.#jobs.get(jobId);
      if (!job || this.#tamperedWith.has(jobId)) continue;
      if (job.results.length < job.runs.length) this.#report('every bulk job can be finished', jobId);
      for (const { runId, outcome } of job.results) {
        const hasActed = this.#acted.has(`${person} ${runId}`);
        // Somebody else may have canceled the run before, or resolved it in the same way.
        const isMade =
          job.action === 'cancel' ||
          (job.action === 'resolve' &&
            this.#resolutions.get(runId) === resolutionText(job.options as unknown as ResolutionFacts));
        const isWrong = hasActed ? outcome === 'refused' : outcome === 'done' && !isMade;
        if (isWrong) this.#report('the results of a bulk job say what happened', `${jobId}, ${runId}: ${outcome}`);
      }
    }
  }
}

const ACTION_EVENTS = ['run.stop_requested', 'step.retry_requested', 'run.resolved'] as const;
type ActionEvent = Extract<CommitEvent, { type: (typeof ACTION_EVENTS)[number] }>;
const isAction = (event: CommitEvent): event is ActionEvent =>
  (ACTION_EVENTS as readonly string[]).includes(event.type);

interface ResolutionFacts {
  outcome: string;
  reason: string;
  writes: Record<string, string>;
}
const resolutionText = ({ outcome, reason, writes }: ResolutionFacts) =>
  JSON.stringify([outcome, reason, Object.entries(writes).toSorted()]);
