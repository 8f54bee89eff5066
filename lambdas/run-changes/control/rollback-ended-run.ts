import { hashOf } from '../../run/canonical-json.ts';
import { type CreatedRun, genesisHash } from '../../run/commit.ts';
import { CountersignError } from '../../run/errors.ts';
import { later } from '../../run/lease.ts';
import type { Receipt } from '../../run/receipt.ts';
import {
  type ActiveRun,
  isTerminal,
  RUN_DEADLINE_MS,
  RUN_SCHEMA_VERSION,
  type Run,
  type TerminalRun,
} from '../../run/run.ts';
import { type By, RunDraft } from '../../run/run-draft.ts';
import type { RunReads } from '../../run/run-store.ts';
import { flagsOfRun } from '../../run/settings/flags.ts';
import type { Steps } from '../../run/step.ts';
import { RUN_SPAN, traceparentOf } from '../../telemetry/trace-context.ts';
import { annotateRun } from '../change-run.ts';
import { loadState } from '../commit-run.ts';
import { isUndoable, type WrittenStep } from '../conclusion/compensation.ts';
import { PICK_UP_WITHIN_MS } from '../conclusion/next-wake.ts';
import type { RunChanger, RunState } from '../run-changer.ts';
import { assertSealed, openWrites } from './resolve-run.ts';

interface Requested {
  actor: string;
  reason?: string;
  /** The id of the run that undoes the writes. */
  rollbackRunId: string;
  /** Only the write of the step with this index, and all later writes. */
  fromStep?: number;
}

/**
 * Rolls back a run that has ended. A terminal run never changes, so the undos are the steps of a new run, which has
 * its own chain and its own evidence. One transaction creates it and links both runs, so there is at most one.
 * Returns the ended run, which names the other one. A second request changes nothing.
 */
export async function rollBackEndedRun(
  changer: RunChanger,
  target: { tenant: string; runId: string },
  { actor, reason, rollbackRunId, fromStep }: Requested,
): Promise<Run> {
  // Without its workflow and trigger, policy could not decide on the undos.
  await loadState(changer, target);
  const { run } = await annotateRun(changer, target, async (state, draft) => {
    const { run: ended } = state;
    if (!isTerminal(ended)) throw new CountersignError('CONFLICT', `the run is ${ended.status} again; try again`);
    if (ended.rolledBackBy !== undefined && fromStep === undefined) return undefined;
    if (ended.rolledBackBy !== undefined) {
      throw new CountersignError(
        'CONFLICT',
        `this run already has the rollback run ${ended.rolledBackBy}; a run has at most one`,
      );
    }
    const bundleHash = await assertSealed(changer.runs, ended);
    const undone = since(fromStep, await writesToUndo(changer.runs, ended, state.steps));
    const by = { initiator: 'user' as const, actor, ...(reason !== undefined && { reason }) };
    const steps = undone.map(({ id }) => id);
    draft
      .create(rollbackRun(state, ended, rollbackRunId, { bundleHash, steps, by, at: draft.at }))
      .note({ rolledBackBy: rollbackRunId })
      .record({ type: 'run.rollback_started', rollbackRunId, actor, ...(reason !== undefined && { reason }) });
    return {};
  });
  return run;
}

/** The writes of the run that are in place. None of its writes may be of unknown outcome: their order matters. */
async function writesToUndo(runs: RunReads, run: TerminalRun, steps: Steps): Promise<WrittenStep[]> {
  const open = await openWrites(runs, run, steps);
  if (open.length > 0) {
    const each = open.map(({ stepId }) => stepId).join(', ');
    throw new CountersignError(
      'RUN_INVALID_TRANSITION',
      `it is unknown whether these writes were made: ${each}; resolve the run first (countersign runs resolve ${run.runId})`,
    );
  }
  const written = [...steps.values()].filter(isUndoable);
  const receipts = await runs.receipts(
    run.tenant,
    written.map(({ receiptKey }) => receiptKey),
  );
  const inPlace = new Set(
    receipts.filter((receipt) => receipt.runId === run.runId && isToUndo(receipt)).map(({ key }) => key),
  );
  const undone = written.filter(({ receiptKey }) => inPlace.has(receiptKey));
  if (undone.length > 0) return undone;
  throw new CountersignError('RUN_INVALID_TRANSITION', 'no write of this run is in place, so there is nothing to undo');
}

/** The write of one step and those that were made after it. */
function since(index: number | undefined, writes: WrittenStep[]): WrittenStep[] {
  if (index === undefined) return writes;
  const first = writes.find((write) => write.index === index);
  if (first) return writes.filter(({ completedAt }) => completedAt >= first.completedAt);
  const each = writes.map((write) => `${write.index + 1} (${write.id})`).join(', ');
  throw new CountersignError('INPUT_INVALID', `step ${index + 1} has no write to undo; these steps have one: ${each}`);
}

/** In place, or of a failed command that may have changed something. */
const isToUndo = (receipt: Receipt): boolean =>
  receipt.outcome === 'succeeded' || (receipt.outcome === 'failed' && receipt.reversal !== undefined);

interface Rollback {
  bundleHash: string;
  steps: string[];
  by: By;
  at: string;
}

/** A run that begins in `rolling_back`: it has no steps of the workflow, only undos. It needs no slot. */
function rollbackRun(
  { trigger, published, settings }: RunState,
  run: TerminalRun,
  runId: string,
  rollback: Rollback,
): CreatedRun {
  const { bundleHash, steps, by, at } = rollback;
  const { tenant, automation, workspace, workflow, subject, enrichment, inputs, salt } = run;
  const flags = flagsOfRun(settings);
  const rollbackOf = { runId: run.runId, bundleHash, steps };
  const accepted = { ...run.trigger, key: `rollback:${run.runId}` };
  const before: ActiveRun = {
    schemaVersion: RUN_SCHEMA_VERSION,
    tenant,
    runId,
    automation,
    workspace,
    workflow,
    trigger: accepted,
    ...(subject !== undefined && { subject }),
    ...(enrichment && { enrichment }),
    ...(salt !== undefined && { salt }),
    traceparent: traceparentOf(run, RUN_SPAN),
    ...(inputs && { inputs }),
    makers: [by.actor],
    writes: 0,
    rollbackOf,
    flags,
    status: 'queued',
    seq: 0,
    headHash: genesisHash(tenant, runId),
    createdAt: at,
    updatedAt: at,
    startedAt: at,
    deadlineAt: later(at, RUN_DEADLINE_MS),
    dueAt: later(at, PICK_UP_WITHIN_MS),
  };
  const draft = new RunDraft({ run: before, steps: new Map() }, at);
  draft
    .record({ type: 'run.accepted', automation, workflow, ...accepted, triggerHash: hashOf(trigger.payload) })
    .record({
      type: 'run.rolls_back',
      ...rollbackOf,
      actor: by.actor,
      ...(by.reason !== undefined && { reason: by.reason }),
    })
    .move('enriching', by)
    .record({
      type: 'run.enriched',
      enrichmentHash: hashOf(enrichment ?? null),
      ...(salt !== undefined && { salted: true as const }),
      ...(published && { workflowHash: hashOf(published) }),
      flags,
    })
    .move('ready', by)
    .move('rolling_back', by)
    .note({ rollback: { endsAs: 'succeeded', actor: by.actor, at } });
  const { run: created, commit } = draft.seal();
  return { run: created as ActiveRun, commit, trigger: { ...trigger, receivedAt: at } };
}
