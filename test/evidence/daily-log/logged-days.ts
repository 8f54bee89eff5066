import { writeAcceptedLists } from '../../../lambdas/evidence/accepted-runs/write-accepted-list.ts';
import { closeDays, type DailyLogRows } from '../../../lambdas/evidence/daily-log/close-days.ts';
import type { PreviousDay } from '../../../lambdas/evidence/daily-log/daily-log.ts';
import type { HeldFiles } from '../../../lambdas/evidence/verify/verify-daily-log.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { dayOf, type LogEntry } from '../../../lambdas/run/log-entry.ts';
import { FakeClock } from '../../fakes/fake-clock.ts';
import { MemoryAcceptedRuns } from '../../fakes/memory/memory-accepted-runs.ts';
import { MemoryEvidenceStore } from '../../fakes/memory/memory-evidence-store.ts';
import { MemoryLog } from '../../fakes/memory/memory-log.ts';
import { MemoryRows } from '../../fakes/memory/memory-rows.ts';
import { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import type { Passage } from '../../fakes/passage.ts';
import { SeededSigner } from '../../fakes/seeded-signer.ts';

export class MemoryDailyLog implements DailyLogRows {
  readonly #entries = new MemoryRows<LogEntry>();
  readonly #closed = new MemoryRows<PreviousDay>();
  readonly #passage: Passage;

  constructor(passage: Passage) {
    this.#passage = passage;
  }

  /** As sealing does, in the transaction that records the bundle. */
  enter(tenant: string, entry: LogEntry): void {
    this.#entries.set(`${tenant}/${dayOf(entry.sealedAt)}`, entry.runId, entry);
  }

  async *entries(tenant: string, day: string): AsyncGenerator<LogEntry> {
    yield* await this.#passage('entries', async () => this.#entries.inPartition(`${tenant}/${day}`));
  }

  lastClosed(tenant: string): Promise<PreviousDay | undefined> {
    return this.#passage('lastClosed', async () => this.#closed.get(tenant));
  }

  saveLastClosed(tenant: string, closed: PreviousDay): Promise<void> {
    return this.#passage('saveLastClosed', async () => this.#closed.set(tenant, '', closed));
  }
}

/** Days on which bundles are sealed, and the closer that makes logs of them. */
export class LoggedDays {
  readonly clock: FakeClock;
  readonly log = new MemoryLog();
  readonly signer = new SeededSigner();
  readonly rows = new MemoryDailyLog((name, run) => this.#passage(name, run));
  readonly store = new MemoryEvidenceStore((name, run) => this.#passage(name, run));
  readonly runs = new MemoryRunStore();
  readonly accepted = new MemoryAcceptedRuns(this.runs, {
    passage: (name, run) => this.#passage(name, run),
    lastClosed: (tenant) => this.rows.lastClosed(tenant),
  });
  #passage: Passage = (_name, run) => run();

  constructor(startsAt: string) {
    this.clock = new FakeClock(startsAt);
  }

  disturb(passage: Passage): void {
    this.#passage = passage;
  }

  /** Adds a log entry for the stored bundle, or for an invented one. */
  async seal(runId: string, { tenant = 'acme', at = new Date(this.clock.now()).toISOString() } = {}): Promise<void> {
    const key = `evidence/${tenant}/${runId}/bundle.json`;
    const standIn = Buffer.from(JSON.stringify({ run: { runId, completedAt: at } }));
    await this.store.putOnce(key, standIn, 'application/json');
    const document = this.store.peek(key) ?? standIn;
    const head = sha256Hex(`head of ${runId}`);
    this.rows.enter(tenant, { runId, sha256: sha256Hex(document), head, count: 7, sealedAt: at });
  }

  close(tenant = 'acme'): Promise<string[]> {
    const { rows, store, signer, clock, log } = this;
    return closeDays({ rows, store, signer, clock, log }, tenant);
  }

  /** The lists of accepted runs up to now. */
  list(tenant = 'acme'): Promise<string[]> {
    const { accepted, store, signer, clock, log } = this;
    return writeAcceptedLists({ rows: accepted, store, signer, clock, log }, tenant);
  }

  /** To this time of a later day. */
  goTo(at: string): void {
    this.clock.advance(Date.parse(at) - this.clock.now());
  }

  /** Everything in the bucket, as an auditor's copy of it. */
  held(): { logs: HeldFiles[]; bundles: HeldFiles[]; lists: HeldFiles[] } {
    const found = (pattern: RegExp) =>
      this.store.keys().flatMap((key): HeldFiles[] => {
        const [, tenant, name] = pattern.exec(key) ?? [];
        const document = this.store.peek(key);
        if (!tenant || !name || !document) return [];
        return [{ tenant, name, document, envelope: this.store.peek(key.replace(/json$/, 'dsse.json')) }];
      });
    return {
      logs: found(/^log\/([^/]+)\/(\d{4}-\d\d-\d\d)\.json$/),
      lists: found(/^log\/([^/]+)\/accepted\/(\d{4}-\d\d-\d\dT\d\d)\.json$/),
      bundles: found(/^evidence\/([^/]+)\/([^/]+)\/bundle\.json$/),
    };
  }
}
