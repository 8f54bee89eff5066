import { type Automation, destinationsOf, termsOf } from '../pipeline/automation.ts';
import { type Commit, genesisHash, sealCommit } from '../run/commit.ts';
import { later } from '../run/lease.ts';
import { type ActiveRun, RUN_DEADLINE_MS, RUN_SCHEMA_VERSION, type RunRequest, type Trigger } from '../run/run.ts';
import type { SlackThread } from '../run/run-terms.ts';
import { PICK_UP_WITHIN_MS } from './conclusion/next-wake.ts';

/** The parts of an automation that a run needs. */
export type StartedAutomation = Pick<Automation, 'name' | 'workspace' | 'workflow' | 'inputs' | 'author'> &
  Partial<Pick<Automation, 'notifications' | 'caps' | 'connections' | 'configuration' | 'model'>>;

export interface NewRun {
  runId: string;
  tenant: string;
  automation: StartedAutomation;
  /** The idempotency key of the delivery or request. */
  key: string;
  subject?: string;
  trigger: Trigger;
  /** The hash of the stored payload. */
  payloadHash: string;
  request?: RunRequest;
  /** What the requester gave. */
  inputs?: Record<string, unknown>;
  makers?: string[];
  traceparent?: string;
  /** Where its progress and its end are shown. */
  thread?: SlackThread;
}

/** A queued run and the first commit of its chain. */
export function newRun(started: NewRun): { run: ActiveRun; commit: Commit } {
  const { runId, tenant, automation, key, subject, trigger, payloadHash, request, inputs, traceparent } = started;
  const makers = [...new Set([started.makers ?? [], automation.author ?? []].flat())];
  const { source, event, receivedAt: at } = trigger;
  const terms = termsOf(automation);
  const notify = [...destinationsOf(automation), ...(started.thread ? [started.thread] : [])];
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
      ...(request ? [{ type: 'run.requested' as const, ...request }] : []),
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
    ...(terms && { terms }),
    ...(notify.length > 0 && { notify }),
    ...(request && { request }),
    ...(inputs && { inputs }),
    ...(makers.length > 0 && { makers }),
    ...(subject !== undefined && { subject }),
    ...(traceparent !== undefined && { traceparent }),
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
