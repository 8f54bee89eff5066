import type { AgentLog } from './agent-log.ts';
import type { Journal } from './journal.ts';
import type { CommandReport, ResultSpool } from './result-spool.ts';
import { type RuntimeClient, RuntimeRefused, RuntimeUnavailable } from './runtime-client.ts';
import type { ServerClock } from './server-clock.ts';
import type { System } from './system.ts';

interface Ports {
  client: Pick<RuntimeClient, 'complete'>;
  spool: ResultSpool;
  journal: Journal;
  clock: ServerClock;
  system: System;
  log: AgentLog;
}

/** Refusals of this process or this request, not of the result: it is sent again, by this process or the next one. */
const LATER = new Set([
  ...['AGENT_IDENTITY_IN_USE', 'AGENT_NOT_REGISTERED', 'REQUEST_REPLAYED', 'CONFLICT'],
  ...['SIGNATURE_INVALID', 'SIGNATURE_EXPIRED'],
]);
const RETRY_MS = { first: 500, max: 30_000 } as const;

/** Reports results until the runtime has them. A result is on disk before the first try. */
export class Deliveries {
  readonly #ports: Ports;
  readonly #refused: (error: RuntimeRefused) => Promise<void>;
  readonly #open = new Set<string>();
  readonly #stopped = new AbortController();

  constructor(ports: Ports, refused: (error: RuntimeRefused) => Promise<void>) {
    this.#ports = ports;
    this.#refused = refused;
  }

  get isIdle(): boolean {
    return this.#open.size === 0;
  }

  /** Continues with the results of an earlier process. Returns their assignments. */
  resume(): Set<string> {
    const reports = this.#ports.spool.all();
    for (const report of reports) void this.#send(report);
    return new Set(reports.map(({ assignment_id }) => assignment_id));
  }

  /** Sends nothing more. What is not confirmed stays on disk, for the next process. */
  stop(): void {
    this.#stopped.abort();
  }

  async deliver(report: CommandReport): Promise<void> {
    this.#ports.spool.put(report);
    await this.#send(report);
  }

  async #send(report: CommandReport): Promise<void> {
    const { assignment_id } = report;
    this.#open.add(assignment_id);
    for (let waitMs: number = RETRY_MS.first; ; waitMs = Math.min(waitMs * 2, RETRY_MS.max)) {
      if (this.#stopped.signal.aborted) return;
      if (await this.#isSettled(report)) break;
      await this.#ports.system.sleep(waitMs * (0.5 + this.#ports.system.random() / 2), this.#stopped.signal);
    }
    const { journal, spool, clock } = this.#ports;
    journal.ended(assignment_id, clock.iso());
    // Last: without an end in the journal and without a result, the next process would report that nobody knows it.
    spool.remove(assignment_id);
    this.#open.delete(assignment_id);
  }

  async #isSettled(report: CommandReport): Promise<boolean> {
    const { client, spool, log } = this.#ports;
    const { assignment_id: assignment, status } = report;
    try {
      const { result } = await client.complete(report);
      if (result === 'lease_lost')
        log.warn('the result came after the lease had ended; the runtime recorded it', { assignment, status });
      return true;
    } catch (error) {
      if (error instanceof RuntimeUnavailable) return false;
      if (!(error instanceof RuntimeRefused)) throw error;
      await this.#refused(error);
      if (LATER.has(error.code)) return false;
      log.error(`the runtime refused a result: ${error.message}`, { assignment, status, code: error.code });
      spool.refused(assignment);
      return true;
    }
  }
}
