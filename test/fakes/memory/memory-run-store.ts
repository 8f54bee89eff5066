import { isStuck, type OutboxEntry, redriven, type StartApproval } from '../../../lambdas/outbox/outbox.ts';
import {
  type Approval,
  type ClosedApprovalList,
  type ClosedApprovalStatus,
  closedAt,
  closedListOf,
  isOpen,
  runIdOf,
} from '../../../lambdas/run/approval.ts';
import type { Commit, CreatedRun, ReceiptWrite, RunChange } from '../../../lambdas/run/commit.ts';
import { type CommitEvent, kindOf } from '../../../lambdas/run/events/events.ts';
import type { IdempotencyRecord } from '../../../lambdas/run/idempotency.ts';
import { dayOf, type LogEntry, logEntryId } from '../../../lambdas/run/log-entry.ts';
import { keyIsFree, type Receipt } from '../../../lambdas/run/receipt.ts';
import { dueAtOf, lostTrigger, type Run, type TerminalRun, type Trigger } from '../../../lambdas/run/run.ts';
import { listedField, matchesFilter, needsMoreThanItsList, type RunFilter } from '../../../lambdas/run/run-filter.ts';
import {
  type AddendumRecord,
  type ArtifactReference,
  type CommitResult,
  DUE_SHARDS,
  type DueItem,
  type DueRun,
  dueTimeStep,
  type EvidenceRecord,
  EXAMINED_MAX,
  type Ingest,
  type IngestResult,
  type LoadedRun,
  originalOf,
  type Page,
  type Rerun,
  type RunCount,
  type RunPage,
  type RunRow,
  type RunStore,
  rerunOf,
  type SweepRecord,
  TITLES_EXAMINED_MAX,
  type WaitingLine,
  type WaitToken,
} from '../../../lambdas/run/run-store.ts';
import { shardOf } from '../../../lambdas/run/settings/caps.ts';
import type { RunningStep, Step } from '../../../lambdas/run/step.ts';
import { type Passage, undisturbed } from '../passage.ts';
import { assignmentRow, MemoryAgents } from './memory-agents.ts';
import { MemoryCaps } from './memory-caps.ts';
import { MemoryDigests } from './memory-digests.ts';
import { MemoryNotices } from './memory-notices.ts';
import { MemoryRows, transact, write } from './memory-rows.ts';
import { MemorySchedules } from './memory-schedules.ts';

const runOf = (tenant: string, runId: string) => `${tenant}/${runId}`;
const padded = (value: number) => String(value).padStart(8, '0');
const isNew = (current: unknown) => current === undefined;

/** Throws if an event has other fields than its kind. Types are not enough: a spread can add fields. */
function assertFields({ type, ...fields }: CommitEvent): void {
  kindOf({ type })?.fields.parse(fields);
}

/** The run store without DynamoDB: the same conditions, lost races and pages, in one process. */
export class MemoryRunStore implements RunStore {
  readonly #runs = new MemoryRows<Run>();
  readonly #triggers = new MemoryRows<Trigger>();
  readonly #steps = new MemoryRows<Step>();
  readonly #commits = new MemoryRows<Commit>();
  readonly #receipts = new MemoryRows<Receipt>();
  readonly #approvals = new MemoryRows<Approval>();
  readonly #taskTokens = new MemoryRows<WaitToken>();
  readonly #evidence = new MemoryRows<EvidenceRecord>();
  readonly #addenda = new MemoryRows<AddendumRecord>();
  readonly #logged = new MemoryRows<LogEntry>();
  readonly #idempotency = new MemoryRows<IdempotencyRecord>();
  readonly #reruns = new MemoryRows<Rerun>();
  readonly #outbox = new MemoryRows<OutboxEntry>();
  readonly #sweeps = new MemoryRows<SweepRecord>();
  readonly #caps = new MemoryCaps();
  /** In the same table: their due slots are in the same index. */
  readonly schedules = new MemorySchedules((name, run) => this.#passage(name, run));
  /** In the same table: commits of runs change assignments. */
  readonly agents = new MemoryAgents((name, run) => this.#passage(name, run));
  /** In the same table: their outbox entries are written in the same transactions. */
  readonly notices = new MemoryNotices((name, run) => this.#passage(name, run));
  readonly digests = new MemoryDigests(this.#outbox, (name, run) => this.#passage(name, run));
  readonly #passage: Passage;

  /** By row: a commit replaces the row of its run. */
  readonly #dueTimes = new WeakMap<Run, { dueAt: string | undefined }>();
  readonly #postponed = new Map<string, { seq: number; dueAt: string; sweeps: number }>();
  #postponements = 0;
  #nextDue: { dueAt: string | undefined; atChanges: number } | undefined;
  readonly #duePageMax: number;
  readonly #dueStepMs: number;

  constructor(passage: Passage = undisturbed, { duePageMax = 3, dueStepMs = 1 } = {}) {
    this.#passage = passage;
    this.#duePageMax = duePageMax;
    this.#dueStepMs = dueStepMs;
  }

  /** The stored rows, read without a call that a fault could affect. */
  readonly inside = {
    runs: () => this.#runs.peekAll(),
    run: (tenant: string, runId: string) => this.#runs.peek(runOf(tenant, runId)),
    steps: (tenant: string, runId: string) => this.#steps.peekPartition(runOf(tenant, runId)),
    commit: (tenant: string, runId: string, seq: number) => this.#commits.peek(runOf(tenant, runId), padded(seq)),
    commits: (tenant: string, runId: string) => this.#commits.peekPartition(runOf(tenant, runId)),
    receipt: (tenant: string, key: string) => this.#receipts.peek(tenant, key),
    receipts: () => this.#receipts.peekAll(),
    evidence: (tenant: string, runId: string) => this.#evidence.peek(runOf(tenant, runId)),
    addenda: (tenant: string, runId: string) => this.#addenda.peekPartition(runOf(tenant, runId)),
    outbox: () => this.#outbox.peekAll(),
    approval: (tenant: string, runId: string, approvalId: string) =>
      this.#approvals.peek(runOf(tenant, runId), approvalId),
    taskToken: (tenant: string, runId: string, approvalId: string) =>
      this.#taskTokens.peek(runOf(tenant, runId), approvalId)?.taskToken,
    /** When the sweeper will find the first row. A simulation asks for it after each event. */
    nextDueAt: () => this.#nextDueAt(),
    /** When the sweeper will find a run. */
    dueAt: (run: Run) => this.#dueTime(run)?.dueAt,
    logged: (tenant: string, day: string) => this.#logged.peekPartition(`${tenant}#${day}`),
    caps: this.#caps as Pick<MemoryCaps, 'counters' | 'holder' | 'holders'>,
  };

  /** Every call passes here, and takes effect within one turn of the event loop. */
  protected async operation<T>(name: string, run: () => T): Promise<T> {
    return this.#passage(name, async () => run());
  }

  ingest({ records, trigger, runs, at, cap }: Ingest): Promise<IngestResult> {
    return this.operation('ingest', () => {
      const held = records.map(({ tenant, key }) => this.#idempotency.get(tenant, key));
      const refusals = transact([
        ...records.map((record) =>
          write(this.#idempotency, [record.tenant, record.key], record, (now) => isNewOrExpired(now, at)),
        ),
        ...runs.flatMap((created) => this.#newRun({ ...created, trigger })),
        ...(cap ? [this.#caps.write(records[0]?.tenant ?? '', cap)] : []),
      ]);
      const [expired] = held;
      if (!refusals) return { outcome: 'created', ...(expired && { expired }) };
      const holder = held.find((_, index) => refusals[index]);
      if (!holder && cap && refusals.at(-1)) return { outcome: 'no_slot' };
      if (!holder) throw new Error('a new run has an id that is taken');
      const own = runs.length > 0 && runs.every(({ run }) => holder.runIds.includes(run.runId));
      return own ? { outcome: 'created' } : { outcome: 'duplicate', record: holder };
    });
  }

  #newRun({ run, commit, trigger }: CreatedRun) {
    commit.events.forEach(assertFields);
    const key = runOf(run.tenant, run.runId);
    return [
      write(this.#runs, [key], run, isNew),
      write(this.#commits, [key, padded(commit.seq)], commit, isNew),
      write(this.#triggers, [key], trigger),
      ...(originalOf(run) === undefined
        ? []
        : [write(this.#reruns, [runOf(run.tenant, originalOf(run) ?? ''), run.runId], rerunOf(run), isNew)]),
    ];
  }

  commit(change: RunChange): Promise<CommitResult> {
    return this.operation('commit', () => this.#commit(change));
  }

  #commit(change: RunChange): CommitResult {
    const { seq: expectedSeq } = change.runBefore;
    const { run, commit, steps, receipts, approvals, assignments, outbox, caps, creates } = change;
    commit.events.forEach(assertFields);
    const key = runOf(run.tenant, run.runId);
    const refusals = transact([
      write(this.#runs, [key], run, (current) => current?.seq === expectedSeq),
      write(this.#commits, [key, padded(commit.seq)], commit, isNew),
      ...steps.map(({ step }) => write(this.#steps, [key, padded(step.index)], step)),
      ...receipts.map((each) =>
        write(this.#receipts, [run.tenant, each.receipt.key], each.receipt, (current) => isAsExpected(each, current)),
      ),
      ...approvals.map(({ approval, expectedRevision }) =>
        write(this.#approvals, [key, approval.approvalId], approval, (current) =>
          expectedRevision === 'new' ? isNew(current) : current?.revision === expectedRevision,
        ),
      ),
      ...outbox.map((entry) => write(this.#outbox, [entry.id], entry)),
      ...assignments.map(({ assignment, expectedRevision }) =>
        write(
          this.agents.assignments,
          assignmentRow(assignment),
          assignment,
          (current) => current?.revision === expectedRevision,
        ),
      ),
      ...(creates ? this.#newRun(creates) : []),
      ...caps.map((cap) => this.#caps.write(run.tenant, cap)),
    ]);
    if (!refusals) return { outcome: 'committed' };
    if (refusals[0] || refusals[1]) {
      const ours = this.#commits.peek(key, padded(commit.seq))?.hash === commit.hash;
      return ours ? { outcome: 'committed' } : { outcome: 'lost' };
    }
    const wanted = receipts.find(({ expects }, at) => expects !== 'ours' && refusals[2 + steps.length + at]);
    const holder = wanted && this.#receipts.get(run.tenant, wanted.receipt.key);
    if (holder) return { outcome: 'receipt_held', receipt: holder };
    const refused = caps.filter((_cap, index) => refusals[refusals.length - caps.length + index]);
    return refused.length > 0 ? { outcome: 'no_slot', refused } : { outcome: 'lost' };
  }

  renewLease(tenant: string, runId: string, step: RunningStep, expiresAt: string): Promise<boolean> {
    return this.operation('renewLease', () => {
      const row = [runOf(tenant, runId), padded(step.index)] as const;
      const held = this.#steps.peek(...row);
      if (held?.status !== 'running' || held.leaseVersion !== step.leaseVersion) return false;
      this.#steps.set(...row, { ...held, lease: { ...held.lease, expiresAt } });
      return true;
    });
  }

  load(tenant: string, runId: string): Promise<LoadedRun | undefined> {
    return this.operation('load', () => {
      const key = runOf(tenant, runId);
      const run = this.#runs.get(key);
      const trigger = this.#triggers.get(key);
      const steps = this.#steps.inPartition(key);
      if (!run || trigger) return run && trigger && { run, trigger, steps };
      return { run, trigger: lostTrigger(run), triggerIsLost: true, steps };
    });
  }

  runAndStep(tenant: string, runId: string, index: number): Promise<{ run: Run; step?: Step } | undefined> {
    return this.operation('runAndStep', () => {
      const run = this.#runs.get(runOf(tenant, runId));
      const step = this.#steps.get(runOf(tenant, runId), padded(index));
      return run && { run, ...(step && { step }) };
    });
  }

  async *everyRow(tenant: string, runId: string): AsyncGenerator<RunRow> {
    const key = runOf(tenant, runId);
    yield* await this.operation('everyRow', (): RunRow[] => {
      const run = this.#runs.get(key);
      const trigger = this.#triggers.get(key);
      const evidence = this.#evidence.get(key);
      return [
        ...this.#approvals.inPartition(key).map((approval) => ({ kind: 'approval' as const, approval })),
        ...this.agents.assignments.inPartition(key).map((assignment) => ({ kind: 'assignment' as const, assignment })),
        ...this.#commits.inPartition(key).map((commit) => ({ kind: 'commit' as const, commit })),
        ...(evidence ? [{ kind: 'evidence' as const, evidence }] : []),
        ...(run ? [{ kind: 'run' as const, run }] : []),
        ...this.#steps.inPartition(key).map((step) => ({ kind: 'step' as const, step })),
        ...(trigger ? [{ kind: 'trigger' as const, trigger }] : []),
      ];
    });
  }

  listRuns(tenant: string, query: RunFilter & { limit: number; after?: string }): Promise<RunPage> {
    const { limit, after, ...filter } = query;
    return this.operation('listRuns', () => {
      const field = listedField(filter);
      const inList = field === undefined || field === 'text' ? {} : { [field]: filter[field] };
      const list: RunFilter = { since: filter.since, until: filter.until, ...inList };
      const newestFirst = [...this.#runs.peekAll()]
        .filter((run) => run.tenant === tenant && matchesFilter(run, list) && (field !== 'text' || run.enrichment))
        .filter((run) => after === undefined || positionOf(run) < after)
        .sort((a, b) => (positionOf(a) < positionOf(b) ? 1 : -1));
      const readsTitles = field === 'text';
      const readMax = needsMoreThanItsList(filter) ? EXAMINED_MAX : limit;
      const examinedMax = readsTitles ? TITLES_EXAMINED_MAX : readMax;
      const examined = newestFirst.slice(0, examinedMax);
      const candidates = readsTitles ? examined.filter((run) => matchesFilter(run, { text: filter.text })) : examined;
      const read = candidates.slice(0, readMax);
      const matching = read.filter((run) => matchesFilter(run, filter));
      const items = matching.slice(0, limit);
      // As DynamoDB does: a full page has a cursor, even if nothing follows.
      const lastExamined = examined.length === examinedMax ? examined.at(-1) : undefined;
      const lastRead = read.length < candidates.length ? read.at(-1) : lastExamined;
      const last = items.length < matching.length ? items.at(-1) : lastRead;
      const leavesOut = readsTitles || needsMoreThanItsList(filter);
      return {
        items,
        places: new Map(items.map((run) => [run.runId, positionOf(run)])),
        ...(last && { next: positionOf(last), ...(leavesOut && { searchedBackTo: last.createdAt }) }),
      };
    });
  }

  countRuns(tenant: string, filters: readonly RunFilter[], max: number): Promise<RunCount[]> {
    return this.operation('countRuns', () =>
      filters.map((filter) => {
        const found = [...this.#runs.peekAll()]
          .filter((run) => run.tenant === tenant && matchesFilter(run, filter))
          .sort((a, b) => (positionOf(a) < positionOf(b) ? -1 : 1));
        const [oldest] = found;
        return {
          count: Math.min(found.length, max),
          ...(found.length > max && { atLeast: true as const }),
          ...(oldest && { oldest: { runId: oldest.runId, createdAt: oldest.createdAt } }),
        };
      }),
    );
  }

  someRuns(tenant: string, runIds: readonly string[]): Promise<Run[]> {
    return this.operation('someRuns', () =>
      [...new Set(runIds)].flatMap((runId) => this.#runs.get(runOf(tenant, runId)) ?? []),
    );
  }

  openOutbox(tenant: string, limit: number): Promise<{ entries: OutboxEntry[]; complete: boolean }> {
    return this.operation('openOutbox', () => {
      const entries = [...this.#outbox.peekAll()].filter(({ id }) => id.startsWith(`${tenant}.`));
      return { entries: entries.slice(0, limit), complete: entries.length < limit };
    });
  }

  recordSweep(tenant: string, sweep: SweepRecord): Promise<void> {
    return this.operation('recordSweep', () => this.#sweeps.set(tenant, '', sweep));
  }

  lastSweep(tenant: string): Promise<SweepRecord | undefined> {
    return this.operation('lastSweep', () => this.#sweeps.get(tenant));
  }

  runIdsStartingWith(tenant: string, prefix: string, limit: number): Promise<string[]> {
    return this.operation('runIdsStartingWith', () =>
      [...this.#runs.peekAll()]
        .filter((run) => run.tenant === tenant && run.runId.startsWith(prefix))
        .map(({ runId }) => runId)
        .sort()
        .slice(0, limit),
    );
  }

  listCommits(tenant: string, runId: string, { after, limit }: { after: number; limit: number }): Promise<Commit[]> {
    return this.operation('listCommits', () =>
      this.#commits
        .inPartition(runOf(tenant, runId))
        .filter(({ seq }) => seq > after)
        .slice(0, limit),
    );
  }

  waitingLine(tenant: string, limit: number, shards: number): Promise<WaitingLine> {
    return this.operation('waitingLine', () => {
      const waiting = [...this.#runs.peekAll()]
        .filter((run) => run.tenant === tenant && run.status === 'queued')
        .sort((a, b) => (positionOf(a) < positionOf(b) ? -1 : 1))
        .slice(0, limit)
        .map(({ runId, workspace, createdAt }) => ({ runId, workspace, createdAt }));
      return { waiting, running: this.#caps.running(tenant, shards) };
    });
  }

  receipts(tenant: string, keys: string[]): Promise<Receipt[]> {
    return this.operation('receipts', () => [...new Set(keys)].flatMap((key) => this.#receipts.get(tenant, key) ?? []));
  }

  approval(tenant: string, runId: string, approvalId: string): Promise<Approval | undefined> {
    return this.operation('approval', () => this.#approvals.get(runOf(tenant, runId), approvalId));
  }

  approvals(tenant: string, approvalIds: readonly string[]): Promise<Approval[]> {
    return this.operation('approvals', () =>
      [...new Set(approvalIds)].flatMap((id) => this.#approvals.get(runOf(tenant, runIdOf(id)), id) ?? []),
    );
  }

  evidence(tenant: string, runId: string): Promise<EvidenceRecord | undefined> {
    return this.operation('evidence', () => this.#evidence.get(runOf(tenant, runId)));
  }

  reruns(tenant: string, runId: string, limit: number): Promise<Rerun[]> {
    const newestFirst = (a: Rerun, b: Rerun) => (a.createdAt < b.createdAt ? 1 : -1);
    return this.operation('reruns', () =>
      this.#reruns.inPartition(runOf(tenant, runId)).sort(newestFirst).slice(0, limit),
    );
  }

  idempotencyRecord(tenant: string, key: string): Promise<IdempotencyRecord | undefined> {
    return this.operation('idempotencyRecord', () => this.#idempotency.get(tenant, key));
  }

  addenda(
    tenant: string,
    runId: string,
    { after, limit }: { after: number; limit: number },
  ): Promise<AddendumRecord[]> {
    return this.operation('addenda', () =>
      this.#addenda
        .inPartition(runOf(tenant, runId))
        .filter(({ seq }) => seq > after)
        .slice(0, limit),
    );
  }

  /** Like the index in DynamoDB: in pages, the item that is due longest first. */
  due(shard: number, now: string, { limit, after }: { limit: number; after?: string }): Promise<Page<DueItem>> {
    return this.operation('due', () => {
      const idOf = (item: DueItem) =>
        item.kind === 'run' ? item.runId : item.kind === 'outbox' ? item.entryId : `${item.tenant}/${item.name}`;
      const position = (item: DueItem) => `${item.dueAt} ${idOf(item)}`;
      const due: DueItem[] = [];
      for (const run of this.#runs.peekAll()) {
        const time = this.#dueTime(run);
        if (time === undefined || time.dueAt > now || shardOf(run.runId, DUE_SHARDS) !== shard) continue;
        due.push({ kind: 'run', tenant: run.tenant, runId: run.runId, ...time });
      }
      for (const { id, tenant, runId, dueAt, failed } of this.#outbox.peekAll()) {
        if (failed || dueAt > now || shardOf(runId, DUE_SHARDS) !== shard) continue;
        due.push({ kind: 'outbox', tenant, entryId: id, dueAt });
      }
      due.push(...this.schedules.due(now).filter(({ name }) => shardOf(name, DUE_SHARDS) === shard));
      const sorted = due
        .filter((item) => after === undefined || position(item) > after)
        .sort((a, b) => (position(a) < position(b) ? -1 : 1));
      const items = sorted.slice(0, Math.min(limit, this.#duePageMax));
      const last = items.at(-1);
      return { items, ...(last && items.length < sorted.length && { next: position(last) }) };
    });
  }

  /** A postponement lasts until the run's next commit. */
  #dueTime(run: Run): { dueAt: string; sweeps: number } | undefined {
    const dueAt = this.#committedDueTime(run);
    if (dueAt === undefined) return undefined;
    const postponed = this.#postponed.get(runOf(run.tenant, run.runId));
    if (postponed?.seq !== run.seq) return { dueAt, sweeps: 0 };
    return { dueAt: postponed.dueAt, sweeps: postponed.sweeps };
  }

  #nextDueAt(): string | undefined {
    const atChanges = this.#runs.changes + this.#outbox.changes + this.#postponements;
    if (this.#nextDue?.atChanges !== atChanges) {
      let dueAt: string | undefined;
      const consider = (each: string | undefined) => {
        if (each !== undefined && (dueAt === undefined || each < dueAt)) dueAt = each;
      };
      for (const run of this.#runs.peekAll()) consider(this.#dueTime(run)?.dueAt);
      for (const entry of this.#outbox.peekAll()) consider(entry.dueAt);
      this.#nextDue = { dueAt, atChanges };
    }
    const slot = this.schedules.nextDueAt();
    const { dueAt } = this.#nextDue;
    return dueAt === undefined || (slot !== undefined && slot < dueAt) ? slot : dueAt;
  }

  #committedDueTime(run: Run): string | undefined {
    const known = this.#dueTimes.get(run);
    if (known) return known.dueAt;
    const exact = dueAtOf(run);
    const dueAt = exact && dueTimeStep(exact, this.#dueStepMs);
    this.#dueTimes.set(run, { dueAt });
    return dueAt;
  }

  postponeRun({ tenant, runId, dueAt, sweeps }: DueRun, until: string): Promise<boolean> {
    return this.operation('postponeRun', () => {
      const run = this.#runs.peek(runOf(tenant, runId));
      const now = run && this.#dueTime(run);
      if (!run || now?.dueAt !== dueAt || now.sweeps !== sweeps) return false;
      this.#postponements += 1;
      this.#postponed.set(runOf(tenant, runId), { seq: run.seq, dueAt: until, sweeps: sweeps + 1 });
      return true;
    });
  }

  outboxEntries(entryIds: string[]): Promise<OutboxEntry[]> {
    return this.operation('outboxEntries', () => entryIds.flatMap((id) => this.#outbox.get(id) ?? []));
  }

  bumpOutbox(entry: OutboxEntry, dueAt: string): Promise<boolean> {
    return this.operation('bumpOutbox', () => {
      const bumped = { ...entry, attempts: entry.attempts + 1, dueAt };
      return !transact([write(this.#outbox, [entry.id], bumped, (current) => current?.attempts === entry.attempts)]);
    });
  }

  stuckOutbox(tenant: string, limit: number): Promise<OutboxEntry[]> {
    return this.operation('stuckOutbox', () =>
      [...this.#outbox.peekAll()]
        .filter((entry) => entry.id.startsWith(`${tenant}.`) && isStuck(entry))
        .slice(0, limit),
    );
  }

  failOutbox(entry: OutboxEntry, failed: NonNullable<OutboxEntry['failed']>): Promise<boolean> {
    return this.operation('failOutbox', () =>
      this.#changeOutbox(entry, { attempts: (entry.attempts ?? 0) + 1, failed }),
    );
  }

  redriveOutbox(entry: OutboxEntry, dueAt: string): Promise<boolean> {
    return this.operation('redriveOutbox', () =>
      this.#changeOutbox(entry, { ...redriven(entry, dueAt), failed: undefined }),
    );
  }

  #changeOutbox(entry: OutboxEntry, changed: Partial<OutboxEntry>): boolean {
    const { failed, ...rest } = { ...entry, ...changed } as OutboxEntry;
    const now = { ...rest, ...(failed && { failed }) } as OutboxEntry;
    const asRead = (current?: OutboxEntry) => current !== undefined && current.attempts === entry.attempts;
    return !transact([write(this.#outbox, [entry.id], now, asRead)]);
  }

  completeSeal(
    entryId: string | undefined,
    tenant: string,
    runId: string,
    evidence: EvidenceRecord,
    { logged, outboxEntries }: { logged: LogEntry; outboxEntries: OutboxEntry[] },
  ): Promise<void> {
    return this.operation('completeSeal', () => {
      const deleteEntry = entryId === undefined ? [] : [write(this.#outbox, [entryId], undefined)];
      const { addendum } = logged;
      const key = runOf(tenant, runId);
      const refusals = transact([
        addendum === undefined
          ? write(this.#evidence, [key], evidence, isNew)
          : write(this.#addenda, [key, padded(addendum)], { seq: addendum, ...evidence }, isNew),
        write(this.#logged, [`${tenant}#${dayOf(logged.sealedAt)}`, logEntryId(logged)], logged),
        ...outboxEntries.map((entry) => write(this.#outbox, [entry.id], entry)),
        ...deleteEntry,
      ]);
      if (refusals) transact(deleteEntry);
    });
  }

  clearSealDue({ sealDueAt: _due, ...run }: TerminalRun, entry?: OutboxEntry): Promise<boolean> {
    return this.operation('clearSealDue', () => {
      const refusals = transact([
        write(this.#runs, [runOf(run.tenant, run.runId)], run, (current) => current?.seq === run.seq),
        ...(entry ? [write(this.#outbox, [entry.id], entry)] : []),
      ]);
      return !refusals;
    });
  }

  completeExport(entryId: string, tenant: string, runId: string, artifacts: ArtifactReference[]): Promise<void> {
    return this.operation('completeExport', () => {
      const key = runOf(tenant, runId);
      const evidence = this.#evidence.peek(key);
      transact([
        ...(evidence ? [write(this.#evidence, [key], { ...evidence, artifacts })] : []),
        write(this.#outbox, [entryId], undefined),
      ]);
    });
  }

  /** Nothing is deleted in the time of a test. */
  expireRun(): Promise<void> {
    return this.operation('expireRun', () => {});
  }

  completeOutboxEntry(entryId: string): Promise<void> {
    return this.operation('completeOutboxEntry', () => {
      transact([write(this.#outbox, [entryId], undefined)]);
    });
  }

  pendingApprovals(tenant: string, { limit, after }: { limit: number; after?: string }): Promise<Page<Approval>> {
    return this.operation('pendingApprovals', () => {
      const position = ({ requestedAt, approvalId }: Approval) => `${requestedAt} ${approvalId}`;
      const oldestFirst = [...this.#approvals.peekAll()]
        .filter((approval) => approval.tenant === tenant && isOpen(approval))
        .filter((approval) => after === undefined || position(approval) > after)
        .sort((a, b) => (position(a) < position(b) ? -1 : 1));
      const items = oldestFirst.slice(0, limit);
      const last = items.at(-1);
      return { items, ...(last && items.length === limit && { next: position(last) }) };
    });
  }

  closedApprovals(
    tenant: string,
    { list, limit, after }: { list: ClosedApprovalList; limit: number; after?: string },
  ): Promise<Page<Approval>> {
    return this.operation('closedApprovals', () => {
      const position = (approval: Approval) => `${closedAt(approval)} ${approval.approvalId}`;
      const newestFirst = [...this.#approvals.peekAll()]
        .filter((approval) => approval.tenant === tenant && !isOpen(approval))
        .filter(({ status }) => closedListOf(status as ClosedApprovalStatus) === list)
        .filter((approval) => after === undefined || position(approval) < after)
        .sort((a, b) => (position(a) < position(b) ? 1 : -1));
      const items = newestFirst.slice(0, limit);
      const last = items.at(-1);
      return { items, ...(last && items.length === limit && { next: position(last) }) };
    });
  }

  countPendingApprovals(tenant: string): Promise<number> {
    return this.operation('countPendingApprovals', () => {
      return [...this.#approvals.peekAll()].filter((approval) => approval.tenant === tenant && isOpen(approval)).length;
    });
  }

  storeTaskToken(
    entryId: string,
    read: Approval,
    changes: Partial<Approval>,
    token?: WaitToken,
  ): ReturnType<RunStore['storeTaskToken']> {
    return this.operation('storeTaskToken', () => {
      const key = [runOf(read.tenant, read.runId), read.approvalId] as const;
      const held: Approval = { ...read, ...changes, revision: read.revision + 1 };
      const refusals = transact([
        write(this.#approvals, key, held, (now) => now?.revision === read.revision),
        write(this.#outbox, [entryId], undefined),
        ...(token
          ? [write(this.#taskTokens, key, token, (now) => now === undefined || now.waitNumber <= token.waitNumber)]
          : []),
      ]);
      if (!refusals) return 'stored';
      return refusals[0] ? 'changed' : 'has_later_token';
    });
  }

  storeCard(
    claimed: StartApproval,
    read: Approval,
    changes: Partial<Approval>,
    start: StartApproval,
  ): ReturnType<RunStore['storeCard']> {
    return this.operation('storeCard', () => {
      const key = [runOf(read.tenant, read.runId), read.approvalId] as const;
      const announced: Approval = { ...read, ...changes, revision: read.revision + 1 };
      const refusals = transact([
        write(this.#approvals, key, announced, (now) => now?.revision === read.revision),
        write(this.#outbox, [start.id], start, (now) => now?.attempts === claimed.attempts),
      ]);
      if (!refusals) return 'stored';
      return refusals[0] ? 'changed' : 'sent_again';
    });
  }

  cancelStart(entryId: string): Promise<void> {
    return this.operation('cancelStart', () => {
      const isNotBeingPosted = (now: OutboxEntry | undefined) =>
        !(now && 'announce' in now && now.announce) || now.attempts === 0;
      transact([write(this.#outbox, [entryId], undefined, isNotBeingPosted)]);
    });
  }

  taskToken(tenant: string, runId: string, approvalId: string): Promise<string | undefined> {
    return this.operation('taskToken', () => this.#taskTokens.get(runOf(tenant, runId), approvalId)?.taskToken);
  }
}

/** Run ids end the position, so that runs of one moment have an order too. */
const positionOf = ({ createdAt, runId }: Run) => `${createdAt} ${runId}`;

function isNewOrExpired(record: IdempotencyRecord | undefined, at: string): boolean {
  return record === undefined || record.expiresAt <= at;
}

function isAsExpected({ receipt, expects }: ReceiptWrite, current: Receipt | undefined): boolean {
  if (expects === 'free') return isFreeFor(receipt, current);
  if (expects === 'ours') return isIntentOf(receipt, current);
  return JSON.stringify(current) === JSON.stringify(expects.asRead);
}

function isFreeFor(receipt: Receipt, current: Receipt | undefined): boolean {
  if (current === undefined || keyIsFree(current)) return true;
  const ownEarlierAttempt = current.runId === receipt.runId && current.stepIndex === receipt.stepIndex;
  return current.outcome !== 'succeeded' && ownEarlierAttempt;
}

function isIntentOf(receipt: Receipt, current: Receipt | undefined): boolean {
  return current?.runId === receipt.runId && current.leaseVersion === receipt.leaseVersion;
}
