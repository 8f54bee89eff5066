import type { Assignment } from '../agents/assignment.ts';
import type { Clock, Log } from '../entry/ports.ts';
import type { Commit } from '../run/commit.ts';
import type { TerminalRun } from '../run/run.ts';
import type { RunRow } from '../run/run-store.ts';
import { endsRun } from '../run/statuses/ended-run.ts';
import { counted, METRICS, type Metrics } from './metrics.ts';
import { type Span, spansOf } from './spans.ts';

/** Throws `CollectorFailed` unless all spans were accepted. */
export type TraceCollector = (spans: readonly Span[]) => Promise<void>;

export class CollectorFailed extends Error {
  override name = 'CollectorFailed';
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { retryable, retryAfterMs }: { retryable: boolean; retryAfterMs?: number | undefined }) {
    super(message);
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
  }
}

const TRIES_MAX = 3;
const FIRST_PAUSE_MS = 250;
/** All tries together. The evidence is stored before, but the function that seals waits for this. */
const EXPORT_MAX_MS = 5_000;
/** A collector that does not respond must not make every seal of a busy stage wait. */
const SKIPPED_AFTER_FAILURE_MS = 30_000;

interface ExportPorts {
  collector: TraceCollector;
  clock: Clock;
  sleep: (ms: number) => Promise<void>;
  metrics: Metrics;
  log: Log;
}

/**
 * Exports the traces of ended runs. A trace is for people who look at a run, and no evidence: what the collector does not
 * accept is tried again for a few seconds, then dropped and counted. It never throws.
 */
export class RunTraces {
  readonly #ports: ExportPorts;
  #skippedUntil = 0;

  constructor(ports: ExportPorts) {
    this.#ports = ports;
  }

  begin(): RunTrace {
    return new RunTrace((run, spans) => this.#export(run, spans));
  }

  async #export({ tenant, runId }: TerminalRun, spans: () => Span[]): Promise<void> {
    const { clock, log, metrics } = this.#ports;
    const dropped = (status: 'refused' | 'unreachable' | 'skipped') =>
      metrics.record(counted(METRICS.tracesDropped, { status }));
    const startMs = clock.now();
    if (startMs < this.#skippedUntil) return dropped('skipped');
    try {
      await this.#send(spans(), startMs);
    } catch (error) {
      const isRefused = !(error instanceof CollectorFailed && error.retryable);
      // A collector that refuses responds at once, so the next run is tried.
      if (!isRefused) this.#skippedUntil = clock.now() + SKIPPED_AFTER_FAILURE_MS;
      dropped(isRefused ? 'refused' : 'unreachable');
      log.warn('a trace was dropped', { tenant, runId, error });
    }
  }

  async #send(spans: readonly Span[], startMs: number): Promise<void> {
    const { collector, clock, sleep } = this.#ports;
    for (let tries = 1; ; tries += 1) {
      try {
        return await collector(spans);
      } catch (error) {
        if (!(error instanceof CollectorFailed) || !error.retryable || tries === TRIES_MAX) throw error;
        const pauseMs = error.retryAfterMs ?? FIRST_PAUSE_MS * 2 ** (tries - 1);
        if (clock.now() + pauseMs - startMs >= EXPORT_MAX_MS) throw error;
        await sleep(pauseMs);
      }
    }
  }
}

/** Takes the rows of a run while they are read for its evidence, so that traces need no request to the table. */
export class RunTrace {
  readonly #export: (run: TerminalRun, spans: () => Span[]) => Promise<void>;
  readonly #commits: Commit[] = [];
  readonly #assignments: Assignment[] = [];
  #hasEnded = false;

  constructor(send: (run: TerminalRun, spans: () => Span[]) => Promise<void>) {
    this.#export = send;
  }

  take(row: RunRow): void {
    if (row.kind === 'assignment') this.#assignments.push(row.assignment);
    if (row.kind !== 'commit' || this.#hasEnded) return;
    this.#commits.push(row.commit);
    this.#hasEnded = endsRun(row.commit);
  }

  export(run: TerminalRun): Promise<void> {
    return this.#export(run, () => spansOf({ run, commits: this.#commits, assignments: this.#assignments }));
  }
}
