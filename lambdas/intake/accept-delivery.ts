import { type Clock, type Ids, isoNow, type Log } from '../entry/ports.ts';
import type { Automation, Definitions } from '../pipeline/definitions.ts';
import { matchAutomations } from '../pipeline/match-automations.ts';
import { hashOf } from '../run/canonical-json.ts';
import { type Commit, genesisHash, sealCommit } from '../run/commit.ts';
import { CountersignError } from '../run/errors.ts';
import { BURST_WINDOW_MS, IDEMPOTENCY_RETENTION_MS, type IdempotencyRecord } from '../run/idempotency.ts';
import { later } from '../run/lease.ts';
import { type ActiveRun, RUN_DEADLINE_MS, RUN_SCHEMA_VERSION, type Trigger } from '../run/run.ts';
import type { RunStore } from '../run/run-store.ts';
import { PICK_UP_WITHIN_MS } from '../worker/conclude-run.ts';
import type { StepQueue } from '../worker/step-queue.ts';
import type { Delivery } from './delivery.ts';

/** One transaction holds 100 rows: two idempotency records and three for each run. */
const RUNS_PER_DELIVERY_MAX = 32;

export interface Intake {
  runs: Pick<RunStore, 'ingest'>;
  definitions: Pick<Definitions, 'automations'>;
  queue: StepQueue;
  clock: Clock;
  ids: Ids;
  log: Log;
}

export interface Accepted {
  runIds: string[];
  deduplicated: boolean;
}

/** Turns a verified delivery into runs, once: record, trigger, runs and their due times are one transaction. */
export async function acceptDelivery(
  intake: Intake,
  tenant: string,
  delivery: Delivery,
  requestHash: string,
): Promise<Accepted> {
  const at = isoNow(intake.clock);
  const { source, event, fields, payload, makers, key } = delivery;
  const trigger: Trigger = { source, event, fields, payload, makers, receivedAt: at };
  const matching = await matchAutomations(await intake.definitions.automations(tenant), trigger, ({ name }, error) =>
    intake.log.error('the filter of an automation failed; it starts no run', { tenant, automation: name, error }),
  );
  if (matching.length === 0) return { runIds: [], deduplicated: false };
  if (matching.length > RUNS_PER_DELIVERY_MAX) {
    throw new Error(
      `${matching.length} automations match ${event}; at most ${RUNS_PER_DELIVERY_MAX} may, disable some`,
    );
  }
  const runs = matching.map((automation) => newRun(intake, tenant, automation, delivery, trigger));
  const runIds = runs.map(({ run }) => run.runId);
  const remembered = (recordKey: string, forMs: number): IdempotencyRecord => ({
    tenant,
    key: recordKey,
    source,
    requestHash,
    runIds,
    createdAt: at,
    expiresAt: later(at, forMs),
  });
  const records = [remembered(key, IDEMPOTENCY_RETENTION_MS[source])];
  if (delivery.burstKey !== undefined) records.push(remembered(delivery.burstKey, BURST_WINDOW_MS));
  const result = await intake.runs.ingest({ records, trigger, runs, at });
  if (result.outcome === 'duplicate') {
    const { record } = result;
    if (record.key === key && record.requestHash !== requestHash) {
      throw new CountersignError(
        'IDEMPOTENCY_CONFLICT',
        `${key} was delivered before with another body; nothing was started`,
      );
    }
    return { runIds: record.runIds, deduplicated: true };
  }
  await Promise.all(runIds.map((runId) => wake(intake, tenant, runId)));
  return { runIds, deduplicated: false };
}

/** The fast path. A queued run carries its due time, so that a message that was never sent loses nothing. */
async function wake(intake: Intake, tenant: string, runId: string): Promise<void> {
  await intake.queue.send({ tenant, runId }).catch((error: unknown) => {
    intake.log.warn('the step message could not be sent; the sweeper will send it', { tenant, runId, error });
  });
}

function newRun(
  intake: Intake,
  tenant: string,
  automation: Automation,
  { subject, key }: Delivery,
  trigger: Trigger,
): { run: ActiveRun; commit: Commit } {
  const { source, event, receivedAt: at } = trigger;
  const runId = intake.ids.next('run');
  const commit = sealCommit({
    seq: 1,
    prevHash: genesisHash(tenant, runId),
    at,
    events: [
      {
        type: 'run.accepted',
        automation: automation.name,
        workflow: automation.workflow,
        source,
        event,
        key,
        triggerHash: hashOf(trigger.payload),
      },
    ],
  });
  const run: ActiveRun = {
    schemaVersion: RUN_SCHEMA_VERSION,
    tenant,
    runId,
    automation: automation.name,
    workspace: automation.workspace,
    workflow: automation.workflow,
    writes: 0,
    trigger: { source, event, key },
    ...(subject !== undefined && { subject }),
    status: 'queued',
    seq: commit.seq,
    headHash: commit.hash,
    createdAt: at,
    updatedAt: at,
    deadlineAt: later(at, RUN_DEADLINE_MS),
    dueAt: later(at, PICK_UP_WITHIN_MS),
  };
  return { run, commit };
}
