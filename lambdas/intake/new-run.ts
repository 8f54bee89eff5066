import type { Automation } from '../pipeline/definitions.ts';
import { type Commit, genesisHash, sealCommit } from '../run/commit.ts';
import { later } from '../run/lease.ts';
import { type ActiveRun, RUN_DEADLINE_MS, RUN_SCHEMA_VERSION, type Trigger } from '../run/run.ts';
import { PICK_UP_WITHIN_MS } from '../run-changes/next-wake.ts';
import type { Delivery } from './delivery.ts';

/** A queued run and the first commit of its chain. `payloadHash` is the hash of the stored payload. */
export function newRun(
  runId: string,
  tenant: string,
  automation: Automation,
  { subject, key }: Delivery,
  trigger: Trigger,
  payloadHash: string,
): { run: ActiveRun; commit: Commit } {
  const { source, event, receivedAt: at } = trigger;
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
        triggerHash: payloadHash,
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
    ...(automation.inputs && { inputsFrom: automation.inputs }),
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
