import { type Clock, type Ids, isoNow, type Log } from '../entry/ports.ts';
import type { Automation, Definitions } from '../pipeline/definitions.ts';
import { matchAutomations } from '../pipeline/match-automations.ts';
import { CountersignError } from '../run/errors.ts';
import { BURST_WINDOW_MS, deliveryKey, IDEMPOTENCY_RETENTION_MS, type IdempotencyRecord } from '../run/idempotency.ts';
import { later } from '../run/lease.ts';
import type { Trigger } from '../run/run.ts';
import type { IngestResult, RunStore } from '../run/run-store.ts';
import { newRun } from '../run-changes/new-run.ts';
import type { StepQueue } from '../run-changes/step-queue.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import type { Expressions } from '../workflow/expressions/expressions.ts';
import type { Delivery } from './delivery.ts';
import { observeDuplicate, observeIgnored, observeStarted } from './observe-delivery.ts';
import { wake } from './request-run.ts';
import { shrinkUntilStored } from './stored-payload.ts';

/** A transaction has at most 100 rows: up to three idempotency records, and three rows per run. */
const RUNS_PER_DELIVERY_MAX = 32;
/** Here each run also needs up to two idempotency records. */
const ADDED_RUNS_MAX = 19;

export interface Intake {
  runs: Pick<RunStore, 'ingest'>;
  definitions: Pick<Definitions, 'automations'>;
  queue: StepQueue;
  expressions: Expressions;
  clock: Clock;
  ids: Ids;
  log: Log;
  telemetry?: Telemetry;
}

export interface Accepted {
  runIds: string[];
  deduplicated: boolean;
}

interface Accepting {
  tenant: string;
  delivery: Delivery;
  requestHash: string;
  trigger: Trigger;
}

/** Starts the runs of a verified delivery once: idempotency records, trigger and runs are one transaction. */
export async function acceptDelivery(
  intake: Intake,
  tenant: string,
  delivery: Delivery,
  requestHash: string,
): Promise<Accepted> {
  const { source, event, fields, payload, makers } = delivery;
  const trigger: Trigger = { source, event, fields, payload, makers, receivedAt: isoNow(intake.clock) };
  const automations = await intake.definitions.automations(tenant);
  const matching = await matchAutomations(intake.expressions, tenant, automations, trigger, ({ name }, error) =>
    intake.log.error('the filter of an automation failed; no run is started', { tenant, automation: name, error }),
  );
  if (matching.length === 0) {
    observeIgnored(intake, { tenant, source, event });
    return { runIds: [], deduplicated: false };
  }
  const accepting = { tenant, delivery, requestHash, trigger };
  const before: IdempotencyRecord[] = [];
  // Each round can find one more record of the same event: of its id, its content, or one of its automations.
  for (let round = 0; round <= 2 * matching.length + 2; round += 1) {
    const missing = matching.filter(({ name }) => !before.some(({ automations }) => automations?.includes(name)));
    const { result, runs } = await startRuns(intake, accepting, missing, before);
    const known = before.flatMap((record) => record.runIds);
    if (result.outcome === 'created') {
      const runIds = runs.map(({ run }) => run.runId);
      if (runs.length > 0) observeStarted(intake, source, runs, true);
      else observeDuplicate(intake, { tenant, source, runIds: known }, true);
      if (result.expired) noteExpired(intake, result.expired);
      await Promise.all(runIds.map((runId) => wake(intake, tenant, runId)));
      return { runIds: [...known, ...runIds], deduplicated: missing.length === 0 };
    }
    if (result.outcome !== 'duplicate') throw new Error('a delivery has no cap');
    const { record } = result;
    if (record.requestHash === requestHash) return duplicateOf(intake, accepting, record);
    if (record.key === delivery.key && !cameThroughAnotherHook(record, delivery)) {
      throw new CountersignError(
        'IDEMPOTENCY_CONFLICT',
        `${delivery.key} was already delivered with another body; no run was started`,
      );
    }
    // An old record does not list its automations, so no run is started again.
    if (!record.automations) return knownRuns(intake, accepting, record);
    before.push(record);
  }
  throw new Error(`the records of ${delivery.key} changed with every attempt`);
}

/** A delivery that is repeated after its record expired was most likely repeated by hand: it starts new runs. */
function noteExpired({ log }: Intake, { tenant, key, expiresAt, runIds }: IdempotencyRecord): void {
  const details = { code: 'IDEMPOTENCY_EXPIRED', tenant, key, expiredAt: expiresAt, earlierRuns: runIds };
  log.warn('a delivery was repeated after its idempotency record expired; it starts new runs', details);
}

type StartedRuns = ReturnType<typeof newRun>[];

/** Starts runs of these automations, unless the delivery or the same event is already accepted. */
async function startRuns(
  intake: Intake,
  accepting: Accepting,
  automations: Automation[],
  before: IdempotencyRecord[],
): Promise<{ result: IngestResult; runs: StartedRuns }> {
  const max = before.length > 0 ? ADDED_RUNS_MAX : RUNS_PER_DELIVERY_MAX;
  if (automations.length > max) {
    throw new CountersignError(
      'CAP_EXCEEDED',
      `${automations.length} automations match ${accepting.delivery.event}; one delivery may start at most ${max} runs: ` +
        'disable some automations, or narrow their filters',
    );
  }
  const { tenant, delivery, trigger } = accepting;
  const { key, subject, authors: makers, traceparent } = delivery;
  const ofDelivery = { key, traceparent, ...(subject !== undefined && { subject }), ...(makers && { makers }) };
  return shrinkUntilStored(trigger, async (stored) => {
    const runs = automations.map((automation) =>
      newRun({ runId: intake.ids.next('run'), tenant, automation, ...ofDelivery, ...stored }),
    );
    const runIds = runs.map(({ run }) => run.runId);
    const records = recordsOf(accepting, automations, runIds, before);
    const result = await intake.runs.ingest({ records, trigger: stored.trigger, runs, at: trigger.receivedAt });
    return { result, runs };
  });
}

function recordsOf(
  { tenant, delivery, requestHash, trigger }: Accepting,
  automations: Automation[],
  runIds: string[],
  before: IdempotencyRecord[],
): IdempotencyRecord[] {
  const { source, key, burstKey, hook } = delivery;
  const at = trigger.receivedAt;
  const retentionMs = IDEMPOTENCY_RETENTION_MS[source];
  const recordFor = (recordKey: string, forMs = retentionMs): IdempotencyRecord => ({
    tenant,
    key: recordKey,
    source,
    requestHash,
    ...(hook !== undefined && { hook }),
    runIds: [...before.flatMap((record) => record.runIds), ...runIds],
    automations: [...before.flatMap((record) => record.automations ?? []), ...automations.map(({ name }) => name)],
    createdAt: at,
    expiresAt: later(at, forMs),
  });
  const isKnown = (recordKey: string) => before.some((record) => record.key === recordKey);
  const records = isKnown(key) ? [] : [recordFor(key)];
  if (delivery.bodyIsKey) records.push(recordFor(deliveryKey.githubBody({ bodyHash: requestHash })));
  if (burstKey !== undefined && !isKnown(burstKey)) records.push(recordFor(burstKey, BURST_WINDOW_MS));
  // A third hook may deliver the same event, so each automation that is added to an existing record gets its own record.
  for (const [existing, forMs] of [[key, retentionMs] as const, [burstKey, BURST_WINDOW_MS] as const]) {
    if (existing === undefined) continue;
    // An automation that joins a burst late has a record that outlives the burst; the next burst must find it.
    const mayOutlive = existing === burstKey && automations.length <= ADDED_RUNS_MAX;
    if (!isKnown(existing) && !mayOutlive) continue;
    for (const [index, { name }] of automations.entries()) {
      const own = recordFor(deliveryKey.forAutomation({ key: existing, automation: name }), forMs);
      records.push({ ...own, runIds: runIds.slice(index, index + 1), automations: [name] });
    }
  }
  return records;
}

const cameThroughAnotherHook = (record: IdempotencyRecord, { hook }: Delivery): boolean =>
  record.hook !== undefined && hook !== undefined && record.hook !== hook;

function duplicateOf(
  intake: Intake,
  { tenant, delivery, requestHash }: Accepting,
  record: IdempotencyRecord,
): Accepted {
  if (record.key === deliveryKey.githubBody({ bodyHash: requestHash })) {
    intake.log.warn('a signed body was sent again; no run is started', { tenant, key: delivery.key });
  }
  return knownRuns(intake, { tenant, delivery }, record);
}

function knownRuns(
  intake: Intake,
  { tenant, delivery: { source } }: Pick<Accepting, 'tenant' | 'delivery'>,
  { runIds }: IdempotencyRecord,
): Accepted {
  observeDuplicate(intake, { tenant, source, runIds }, true);
  return { runIds, deduplicated: true };
}
