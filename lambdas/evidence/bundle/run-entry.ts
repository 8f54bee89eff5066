import * as z from 'zod';
import { Sha256, textDigest } from '../../run/digest.ts';
import { type RunRequest, TERMINAL_STATUSES, type TerminalRun, type Trigger } from '../../run/run.ts';
import { Count, Described, Digest, described, describeFailure, Failure, Time, WorkflowVersion } from './entry-parts.ts';

export const EvidenceRun = z.strictObject({
  tenant: z.string(),
  runId: z.string(),
  automation: z.string(),
  workspace: z.string(),
  workflow: WorkflowVersion,
  trigger: z.strictObject({ source: z.string(), event: z.string(), key: z.string() }),
  request: z
    .strictObject({
      actor: z.string(),
      rerunOf: z.string().optional(),
      replay: z.strictObject({ of: z.string(), from: z.string(), root: z.string().optional() }).optional(),
      planHash: z.string().optional(),
      slot: Time.optional(),
      validationMode: z.string().optional(),
      profile: z.string().optional(),
      action: z
        .strictObject({
          tool: z.string(),
          inputHash: Sha256,
          of: z.strictObject({ runId: z.string(), step: z.string() }).optional(),
        })
        .optional(),
    })
    .optional(),
  requester: z.strictObject({ person: z.string().optional(), identityHash: Sha256.optional() }).optional(),
  flags: z.record(z.string(), z.boolean()).optional(),
  subject: z.string().optional(),
  status: z.enum(TERMINAL_STATUSES),
  error: Failure.optional(),
  createdAt: Time,
  startedAt: Time.optional(),
  completedAt: Time,
  durationMs: Count,
  deadlineAt: Time,
  writes: Count,
  resumeCount: Count.optional(),
  concurrencyKey: Digest.optional(),
  rollbackOf: z.strictObject({ runId: z.string(), bundleHash: Sha256, steps: z.array(z.string()) }).optional(),
  rollback: z.strictObject({ endsAs: z.string(), actor: z.string(), at: Time, error: Failure.optional() }).optional(),
  compensation: z
    .array(z.strictObject({ step: z.string(), receiptKey: z.string(), outcome: z.string(), reason: Digest.optional() }))
    .optional(),
});
export type EvidenceRun = z.infer<typeof EvidenceRun>;

export const EvidenceTrigger = z.strictObject({
  source: z.string(),
  event: z.string(),
  receivedAt: Time,
  payload: Described,
});
export type EvidenceTrigger = z.infer<typeof EvidenceTrigger>;

/** Copies each field by name, so that a new field of a run is not in evidence unless it is added here. */
export function describeRun(run: TerminalRun): EvidenceRun {
  const { tenant, runId, automation, workspace, workflow, trigger, request, subject, status } = run;
  const { createdAt, startedAt, completedAt, durationMs, deadlineAt, writes, resumeCount, concurrencyKey, rollback } =
    run;
  return {
    tenant,
    runId,
    automation,
    workspace,
    workflow: { name: workflow.name, version: workflow.version },
    trigger: { source: trigger.source, event: trigger.event, key: trigger.key },
    request: request && describeRequest(request),
    requester: run.requester && { person: run.requester.person, identityHash: run.requester.identityHash },
    flags: run.flags,
    subject,
    status,
    error: run.error && describeFailure(run.error),
    createdAt,
    startedAt,
    completedAt,
    durationMs,
    deadlineAt,
    writes,
    resumeCount,
    concurrencyKey: concurrencyKey === undefined ? undefined : textDigest(concurrencyKey),
    rollbackOf: run.rollbackOf && {
      runId: run.rollbackOf.runId,
      bundleHash: run.rollbackOf.bundleHash,
      steps: run.rollbackOf.steps,
    },
    rollback: rollback && {
      endsAs: rollback.endsAs,
      actor: rollback.actor,
      at: rollback.at,
      error: rollback.error && describeFailure(rollback.error),
    },
    compensation: run.compensation?.map(({ step, receiptKey, outcome, reason }) => ({
      step,
      receiptKey,
      outcome,
      reason: reason === undefined ? undefined : textDigest(reason),
    })),
  };
}

const describeRequest = ({ actor, rerunOf, replay, planHash, slot, validationMode, profile, action }: RunRequest) => ({
  actor,
  rerunOf,
  replay: replay && { of: replay.of, from: replay.from, root: replay.root },
  planHash,
  slot,
  validationMode,
  profile,
  action: action && {
    tool: action.tool,
    inputHash: action.inputHash,
    of: action.of && { runId: action.of.runId, step: action.of.step },
  },
});

export function describeTrigger({ source, event, receivedAt, payload }: Trigger): EvidenceTrigger {
  return { source, event, receivedAt, payload: described(payload, 'foreign') };
}
