import { didYouMean } from '../../entry/did-you-mean.ts';
import { canonicalJson } from '../../run/canonical-json.ts';
import { CountersignError, recordedError } from '../../run/errors.ts';
import type { OpenReceipt, Receipt, SucceededReceipt } from '../../run/receipt.ts';
import { isTerminal, type Resolution, type Run, type TerminalRun, type WriteFinding } from '../../run/run.ts';
import type { RunDraft } from '../../run/run-draft.ts';
import type { RunReads } from '../../run/run-store.ts';
import { receiptKeyOf, type Steps } from '../../run/step.ts';
import { annotateRun } from '../change-run.ts';
import { writerOf } from '../conclusion/compensation.ts';
import type { RunChanger } from '../run-changer.ts';

export type Resolving = Pick<Resolution, 'outcome' | 'reason' | 'writes'>;

/**
 * A person records how a run that ended without success was settled, and whether each write of unknown outcome was made.
 * That decides about the key of the write: a write that was made is reused, one that was not made may be made again. The
 * status stays, and one resolution is final.
 */
export async function resolveRun(
  changer: RunChanger,
  target: { tenant: string; runId: string },
  resolving: Resolving,
  actor: string,
): Promise<Run> {
  const { run } = await annotateRun(changer, target, async ({ run: before, steps }, draft) => {
    if (!isTerminal(before)) throw notEnded(before);
    if (before.resolution) {
      assertSameResolution(before.resolution, resolving);
      return undefined;
    }
    const open = await openWrites(changer.runs, before, steps);
    assertResolvable(before, open.length);
    assertNamesEach(open, resolving.writes);
    await assertSealed(changer.runs, before);
    const { outcome, reason, writes } = resolving;
    const found = open.map((receipt) => ({ receipt, finding: writes[receipt.stepId] as WriteFinding }));
    const settled = await settledReceipts(changer.runs, draft, steps, found, actor);
    for (const receipt of settled) draft.putReceipt(receipt, 'ours');
    draft.note({ resolution: { outcome, actor, at: draft.at, reason, writes } }).record({
      type: 'run.resolved',
      outcome,
      actor,
      reason,
      writes: found.map(({ receipt, finding }) => ({ step: receipt.stepId, receiptKey: receipt.key, finding })),
    });
    return {};
  });
  return run;
}

/** The writes of a run, including undos, whose outcome is unknown. They block their keys. */
export async function openWrites(
  runs: Pick<RunReads, 'receipts'>,
  { tenant, runId }: Run,
  steps: Steps,
): Promise<OpenReceipt[]> {
  const keys = [...steps.values()].flatMap((step) => receiptKeyOf(step) ?? []);
  const receipts = await runs.receipts(tenant, keys);
  return receipts.filter(
    (receipt): receipt is OpenReceipt =>
      receipt.runId === runId &&
      receipt.effect !== 'read' &&
      (receipt.outcome === 'intent' || receipt.outcome === 'unknown'),
  );
}

/** The bundle shows the receipts as they were when the run ended, so they change only after it is sealed. */
export async function assertSealed(runs: Pick<RunReads, 'evidence'>, { tenant, runId }: Run): Promise<string> {
  const evidence = await runs.evidence(tenant, runId);
  if (evidence) return evidence.sha256;
  throw new CountersignError(
    'CONFLICT',
    'the evidence of the run is not sealed yet; try again in a moment, or see RUNBOOK, "A run is not sealed"',
  );
}

const notEnded = ({ status }: Run) =>
  new CountersignError(
    'RUN_INVALID_TRANSITION',
    `only a run that has ended can be resolved; this one is ${status}. Cancel it first, or wait`,
  );

/** `canceled` only with an unknown write: otherwise nothing is left to settle. */
function assertResolvable({ status }: TerminalRun, open: number): void {
  if (status === 'needs_human' || status === 'failed_terminal' || status === 'timed_out' || open > 0) return;
  throw new CountersignError(
    'RUN_INVALID_TRANSITION',
    `only a run that ended as needs_human, failed_terminal or timed_out can be resolved; this one ended as ${status}`,
  );
}

function assertSameResolution({ actor, at, ...before }: Resolution, resolving: Resolving): void {
  if (canonicalJson(before) === canonicalJson({ ...resolving })) return;
  throw new CountersignError('CONFLICT', `${actor} resolved this run as ${before.outcome} at ${at}; that is final`);
}

function assertNamesEach(open: readonly OpenReceipt[], writes: Resolving['writes']): void {
  const steps = open.map(({ stepId }) => stepId);
  const foreign = Object.keys(writes).find((step) => !steps.includes(step));
  if (foreign !== undefined) {
    const known = steps.length > 0 ? `these steps have one: ${steps.join(', ')}` : 'all outcomes of this run are known';
    throw new CountersignError(
      'INPUT_INVALID',
      `step "${foreign}" has no write of unknown outcome${didYouMean(foreign, steps) || `; ${known}`}`,
    );
  }
  const missing = open.filter(({ stepId }) => !Object.hasOwn(writes, stepId));
  if (missing.length === 0) return;
  const each = missing.map(({ stepId, target }) => `${stepId} (${target})`).join(', ');
  throw new CountersignError('INPUT_INVALID', `check the target and say happened or did_not for each of: ${each}`);
}

interface Found {
  receipt: OpenReceipt;
  finding: WriteFinding;
  actor: string;
}

/**
 * The receipts with their outcome. An undo also decides about the receipt of the write that it undoes, whose own outcome
 * may have been unknown, too: undos have larger indexes, so they come last.
 */
async function settledReceipts(
  runs: RunReads,
  { at, run }: RunDraft,
  steps: Steps,
  found: readonly Omit<Found, 'actor'>[],
  actor: string,
): Promise<Iterable<Receipt>> {
  const settled = new Map<string, Receipt>();
  for (const { receipt, finding } of [...found].sort((a, b) => a.receipt.stepIndex - b.receipt.stepIndex)) {
    settled.set(receipt.key, settledReceipt(at, { receipt, finding, actor }));
    const undoes = steps.get(receipt.stepIndex)?.undoes;
    const undone = undoes === undefined ? undefined : steps.get(undoes);
    const key = undone && receiptKeyOf(undone);
    if (key === undefined) continue;
    const made = settled.get(key) ?? (await runs.receipts(receipt.tenant, [key]))[0];
    if (made?.outcome !== 'succeeded' || made.runId !== writerOf(run)) continue;
    settled.set(key, undoneReceipt(made, at, { receipt, finding, actor }));
  }
  return settled.values();
}

function settledReceipt(at: string, { receipt, finding, actor }: Found): Receipt {
  const {
    before,
    outcome: _open,
    error: _error,
    reversal,
    ...facts
  } = {
    ...{ error: undefined, reversal: undefined },
    ...receipt,
  };
  if (finding === 'did_not') {
    const error = recordedError('OUTCOME_UNKNOWN', `${actor} checked the target: the write was not made`);
    return { ...facts, outcome: 'failed', settledAt: at, error };
  }
  return {
    ...facts,
    outcome: 'succeeded',
    settledAt: at,
    output: null,
    ...(before && { before }),
    reversal: reversal ?? {
      irreversible: `${actor} found the write at the target; the response that says how to undo it is lost`,
    },
    response: {},
  };
}

function undoneReceipt(
  { undoBegunAt: _begun, ...made }: SucceededReceipt,
  at: string,
  { receipt, finding }: Found,
): Receipt {
  if (finding === 'did_not') return made;
  return { ...made, outcome: 'reversed', reversedAt: at, reversedBy: receipt.key };
}
