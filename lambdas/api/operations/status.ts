import { type Clock, isoNow } from '../../entry/ports.ts';
import { isStuck, type OutboxEntry } from '../../outbox/outbox.ts';
import { may } from '../../people/rights.ts';
import { later } from '../../run/lease.ts';
import { isTerminal, type Run, type RunStatus } from '../../run/run.ts';
import type { RunFilter } from '../../run/run-filter.ts';
import type { RunCount, RunStore, SweepRecord } from '../../run/run-store.ts';
import type { FlagName } from '../../run/settings/flags.ts';
import type { Caller } from '../authorizer/caller.ts';
import type { StatusProblem } from '../contract/operations.ts';
import { ALL_STATUSES, COUNTED_MAX } from '../runs/count-runs.ts';
import type { DeadLetters } from './dead-letters.ts';
import { problemText } from './status-texts.ts';

const MINUTE_MS = 60_000;
/** Failures of the last day are shown. Older ones are in the list of runs. */
const RECENT_MS = 24 * 60 * MINUTE_MS;
/** The sweeper runs once a minute. */
const SWEEP_MAX_AGE_MS = 3 * MINUTE_MS;
const SWEEP_TAKES_MS = 55_000;
/** The alarm "Due rows are not sent" has the same limit. */
const DUE_MAX_AGE_MS = 10 * MINUTE_MS;
const SEALED_WITHIN_MS = 10 * MINUTE_MS;
const SLOT_WITHIN_MS = 5 * MINUTE_MS;
const RETRIED_WITHIN_MS = 15 * MINUTE_MS;
const OUTBOX_READ_MAX = 400;

export interface StatusPorts {
  runs: Pick<RunStore, 'countRuns' | 'someRuns' | 'openOutbox' | 'lastSweep'>;
  deadLetters: Pick<DeadLetters, 'counts'>;
  clock: Clock;
}

type Found = Pick<StatusProblem, 'kind' | 'count' | 'atLeast'> & { since?: string; runId?: string };

/**
 * What is wrong in a tenant, from about 25 small requests: each count reads at most 1,000 keys of an index. SQS is read only
 * if a dead-letter queue is not empty.
 */
export async function readStatus({ runs, deadLetters, clock }: StatusPorts, { tenant, role }: Caller) {
  const now = isoNow(clock);
  const seesDeadLetters = may(role, 'dead-letters:read');
  const [byStatus, problems, sweep, outbox, dead] = await Promise.all([
    countAll(runs, tenant, statusFilters(ALL_STATUSES)),
    countAll(runs, tenant, problemFilters(now)),
    runs.lastSweep(tenant),
    runs.openOutbox(tenant, OUTBOX_READ_MAX),
    seesDeadLetters ? deadLetters.counts(tenant) : [],
  ]);
  const found = [
    ...sweepProblems(sweep, now),
    ...[...problems].map(([kind, count]) => ofRuns(kind, count)),
    ...outboxProblems(outbox, now),
    ...deadLetterProblem(dead),
  ].filter(({ count }) => count > 0);
  const oldest = await runs.someRuns(
    tenant,
    found.flatMap(({ runId }) => runId ?? []),
  );
  const described = found
    .map((problem) => describe(problem, oldest))
    .sort((a, b) => (a.severity < b.severity ? -1 : a.severity > b.severity ? 1 : 0));
  return {
    tenant,
    at: now,
    healthy: described.every(({ severity }) => severity === 'watch'),
    problems: described,
    counts: {
      byStatus: [...byStatus]
        .filter(([, { count }]) => count > 0)
        .map(([status, { count, atLeast }]) => ({ status, count, ...(atLeast && { atLeast }) })),
    },
    lastSweepAt: sweep?.at ?? null,
    notChecked: seesDeadLetters ? [] : ['dead letters'],
  };
}

const statusFilters = (statuses: readonly RunStatus[]): Map<RunStatus, RunFilter> =>
  new Map(statuses.map((status) => [status, { status }]));

/** The runs of each problem. Runs that wait for a slot or retry are a problem if they were accepted some time ago. */
function problemFilters(now: string): Map<Found['kind'], RunFilter> {
  const since = later(now, -RECENT_MS);
  return new Map<Found['kind'], RunFilter>([
    ['needs_human', { needsResolution: true }],
    ['approvals_overdue', { overdue: true }],
    ['connection_missing', { errorCode: 'CONNECTION_MISSING', since }],
    ['failed', { status: 'failed_terminal', since }],
    ['timed_out', { status: 'timed_out', since }],
    ['paused', { status: 'paused' }],
    ['waiting_for_slot', { status: 'queued', until: later(now, -SLOT_WITHIN_MS) }],
    ['retrying', { status: 'failed_retryable', until: later(now, -RETRIED_WITHIN_MS) }],
  ]);
}

async function countAll<Key>(
  runs: Pick<RunStore, 'countRuns'>,
  tenant: string,
  filters: Map<Key, RunFilter>,
): Promise<Map<Key, RunCount>> {
  const counts = await runs.countRuns(tenant, [...filters.values()], COUNTED_MAX);
  return new Map([...filters.keys()].map((key, index) => [key, counts[index] ?? { count: 0 }]));
}

const ofRuns = (kind: Found['kind'], { count, atLeast, oldest }: RunCount): Found => ({
  kind,
  count,
  ...(atLeast && { atLeast }),
  ...(oldest && { since: oldest.createdAt, runId: oldest.runId }),
});

/** A stage that was just deployed has not swept yet. */
function sweepProblems(sweep: SweepRecord | undefined, now: string): Found[] {
  if (!sweep) return [];
  const silent = sweep.at < later(now, -SWEEP_MAX_AGE_MS);
  const { oldestDueAt, due } = sweep;
  const late = oldestDueAt !== undefined && oldestDueAt < later(sweep.at, -DUE_MAX_AGE_MS);
  // A flag that is on again is still recorded for some minutes, with the time of an earlier sweep.
  const isOff = (flag: FlagName) => (sweep.flagsOff?.[flag] ?? '') > later(sweep.at, -SWEEP_TAKES_MS);
  return [
    ...(isOff('writes.enabled') ? [{ kind: 'writes_off' as const, count: 1 }] : []),
    ...(isOff('worker_orchestration.enabled') ? [{ kind: 'agents_off' as const, count: 1 }] : []),
    ...(silent ? [{ kind: 'sweeper_silent' as const, count: 1, since: sweep.at }] : []),
    ...(late ? [{ kind: 'due_rows' as const, count: due, since: oldestDueAt }] : []),
  ];
}

function outboxProblems({ entries, complete }: { entries: OutboxEntry[]; complete: boolean }, now: string): Found[] {
  const late = (entry: OutboxEntry) =>
    entry.kind === 'seal_evidence' && !isStuck(entry) && entry.createdAt < later(now, -SEALED_WITHIN_MS);
  return [
    ofEntries('outbox_stuck', entries.filter(isStuck), complete),
    ofEntries('not_sealed', entries.filter(late), complete),
  ];
}

function ofEntries(kind: Found['kind'], entries: OutboxEntry[], complete: boolean): Found {
  // An entry of another version may lack its time.
  const [oldest] = entries.toSorted((a, b) => ((a.createdAt ?? '') < (b.createdAt ?? '') ? -1 : 1));
  return {
    kind,
    count: entries.length,
    ...(!complete && { atLeast: true as const }),
    ...(oldest && { since: oldest.createdAt, runId: oldest.runId }),
  };
}

function deadLetterProblem(queues: Awaited<ReturnType<DeadLetters['counts']>>): Found[] {
  const count = queues.reduce((sum, { messages }) => sum + messages, 0);
  const since = queues.flatMap(({ oldestAt }) => oldestAt ?? []).sort()[0];
  const atLeast = queues.some(({ complete }) => !complete);
  return [{ kind: 'dead_letters', count, ...(atLeast && { atLeast }), ...(since !== undefined && { since }) }];
}

const errorOf = (run: Run) => (isTerminal(run) ? run.error : undefined);

function describe({ kind, count, atLeast, since, runId }: Found, oldest: readonly Run[]): StatusProblem {
  const run = oldest.find((each) => each.runId === runId);
  return {
    kind,
    count,
    ...(atLeast && { atLeast }),
    since: since ?? null,
    oldestRun:
      runId === undefined
        ? null
        : { runId, title: run?.enrichment?.title ?? null, errorCode: (run && errorOf(run)?.code) ?? null },
    ...problemText(kind, count, atLeast),
  };
}
