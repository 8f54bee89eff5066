import { type Clock, type Ids, isoNow, type Log } from '../entry/ports.ts';
import { CountersignError } from '../run/errors.ts';
import { IDEMPOTENCY_RETENTION_MS, type IdempotencyRecord, type StartedRun } from '../run/idempotency.ts';
import { later } from '../run/lease.ts';
import type { RunRequest, Trigger } from '../run/run.ts';
import type { RunStore } from '../run/run-store.ts';
import type { CapWrite } from '../run/settings/caps.ts';
import { newRun, type StartedAutomation } from '../run-changes/new-run.ts';
import type { StepQueue } from '../run-changes/step-queue.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import { observeDuplicate, observeStarted } from './observe-delivery.ts';
import { shrinkUntilStored } from './stored-payload.ts';

export interface RunStarter {
  runs: Pick<RunStore, 'ingest'>;
  queue: StepQueue;
  clock: Clock;
  ids: Ids;
  log: Log;
  telemetry?: Telemetry;
}

export interface RequestedRun {
  tenant: string;
  automation: StartedAutomation;
  trigger: Omit<Trigger, 'receivedAt'>;
  subject?: string;
  request: RunRequest;
  /** The idempotency key, made from the new run's id if the caller gave none. */
  key: (runId: string) => string;
  /** Of everything that was requested. The same key with another request is a conflict. */
  requestHash: string;
  inputs?: Record<string, unknown>;
  /** Further people whose input is in the run. */
  makers?: string[];
  /** The trace that the run joins. */
  traceparent?: string;
  /** A limit of the caller, counted with the run. */
  cap?: CapWrite;
}

/** The limit of the caller is reached: nothing was started. */
export class NoSlotForCaller extends Error {}

/**
 * Starts one run that no webhook starts, in the same transaction as webhooks: idempotency record, trigger and run. The
 * same request again starts nothing and returns the run of the first.
 */
export async function requestRun(
  starter: RunStarter,
  requested: RequestedRun,
): Promise<{ isNew: boolean; run: StartedRun }> {
  const { tenant, requestHash } = requested;
  const trigger = { ...requested.trigger, receivedAt: isoNow(starter.clock) };
  const runId = starter.ids.next('run');
  const key = requested.key(runId);
  const started = startedRun(requested, runId, key, trigger.receivedAt);
  const { result, created } = await shrinkUntilStored(trigger, async (stored) => {
    const created = newRun({ ...requested, runId, key, ...stored });
    const result = await starter.runs.ingest({
      records: [
        {
          tenant,
          key,
          source: trigger.source,
          requestHash,
          runIds: [runId],
          automations: [requested.automation.name],
          response: started,
          createdAt: trigger.receivedAt,
          expiresAt: later(trigger.receivedAt, IDEMPOTENCY_RETENTION_MS[trigger.source]),
        },
      ],
      trigger: stored.trigger,
      runs: [created],
      at: trigger.receivedAt,
      ...(requested.cap && { cap: requested.cap }),
    });
    return { result, created };
  });
  if (result.outcome === 'created') {
    observeStarted(starter, trigger.source, [created], false);
    await wake(starter, tenant, runId);
    return { isNew: true, run: started };
  }
  if (result.outcome === 'no_slot') throw new NoSlotForCaller();
  const { runIds } = result.record;
  const run = responseOf(result.record, requestHash);
  observeDuplicate(starter, { tenant, source: trigger.source, runIds }, false);
  return { isNew: false, run };
}

/** The run that the same request started before; undefined if none did, or too long ago. */
export async function repeatedRequest(
  { runs, clock }: { runs: Pick<RunStore, 'idempotencyRecord'>; clock: Clock },
  tenant: string,
  key: string,
  requestHash: string,
): Promise<StartedRun | undefined> {
  const record = await runs.idempotencyRecord(tenant, key);
  return record && record.expiresAt > isoNow(clock) ? responseOf(record, requestHash) : undefined;
}

function responseOf(record: IdempotencyRecord, requestHash: string): StartedRun {
  if (record.requestHash !== requestHash || !record.response) {
    throw new CountersignError(
      'IDEMPOTENCY_CONFLICT',
      `the idempotency key was used before for another request, which started ${record.runIds.join(', ')}; use a new key`,
    );
  }
  return record.response;
}

function startedRun({ automation, trigger, subject, request }: RequestedRun, runId: string, key: string, at: string) {
  const { source, event } = trigger;
  return {
    runId,
    automation: automation.name,
    workflow: automation.workflow,
    trigger: { source, event, key },
    ...(subject !== undefined && { subject }),
    request,
    createdAt: at,
  };
}

/** Starts a run without delay. If the message is lost, the sweeper finds the queued run by its due time. */
export async function wake({ queue, log }: Pick<RunStarter, 'queue' | 'log'>, tenant: string, runId: string) {
  await queue.send({ tenant, runId }).catch((error: unknown) => {
    log.warn('the step message could not be sent; the sweeper will send it', { tenant, runId, error });
  });
}
