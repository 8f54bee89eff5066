import * as z from 'zod';
import { eventKind, Hash, Id, ofWrite, Sentence } from './event-kind.ts';
import { appended } from './replay-state.ts';

/** Fields that only a settled write has. */
const OPEN = {
  ...{ settledAt: undefined, recovered: undefined, reversedAt: undefined, reversedBy: undefined },
  command: undefined,
};

/** The call reads its target and changes nothing there. */
const IsRead = z.literal(true).optional();

const WRITE_OUTCOMES = ['intent', 'succeeded', 'reversed', 'failed', 'unknown'] as const;

/**
 * The result of rolling back one write. `drifted`: the target was changed after the write, so it is not overwritten.
 * `refused`: policy, a person or the target refused. `unknown`: the state of the target is not known. `kept`: the
 * rollback did not include this write.
 */
const COMPENSATION_OUTCOMES = ['reversed', 'drifted', 'irreversible', 'refused', 'unknown', 'kept'] as const;
const Compensated = z.strictObject({
  ...ofWrite,
  outcome: z.enum(COMPENSATION_OUTCOMES),
  reason: Sentence.optional(),
});
export type Compensation = z.infer<typeof Compensated>;

export const WRITE_EVENTS = {
  'write.intended': eventKind({
    summary:
      'The worker is about to call the target: to write, or with `read` to read. Recorded before the request is sent.',
    fields: z.strictObject({ ...ofWrite, tool: Id, target: Id, requestHash: Hash, read: IsRead }),
    text: ({ step, target, read }) => `${step}: ${read ? 'read of' : 'write to'} ${target} is about to start`,
    replay: (replay, { step, receiptKey: key, tool, target, requestHash }, { at }) => {
      const { claimedLast } = replay;
      if (claimedLast?.claim) claimedLast.claim = { ...claimedLast.claim, receiptKey: key };
      const { claim, decided, approvalId } = claimedLast ?? {};
      const grounds = decided && { policyHash: decided.policyHash, policies: decided.policies, approvalId };
      replay.writes.set(key, {
        fields: {
          ...{ key, runId: replay.runId, step, tool, target, requestHash, intentAt: at, grounds },
          ...{ index: claim?.index, attempt: claim?.attempt, leaseVersion: claim?.leaseVersion },
          ...{ outcome: 'intent', ...OPEN, output: undefined },
        },
        intentsAt: appended(replay.writes.get(key)?.intentsAt, at),
      });
    },
    proves: {
      step: 'right after `step.claimed`: the `receiptKey` of the claim',
      receipt:
        '`step`, `tool`, `target`, `requestHash`, `intentAt` = *at*, `outcome` `intent`; `index`, `attempt`, `leaseVersion` of the `step.claimed` before it; `grounds`; no fields of a settled write. `openSince` is *at* of one of the `write.intended` of this key',
    },
  }),
  'write.settled': eventKind({
    summary: 'The outcome of the write or read is known, or the worker could not determine it.',
    fields: z.strictObject({
      ...ofWrite,
      outcome: z.enum(WRITE_OUTCOMES),
      recovered: z.literal(true).optional(),
      read: IsRead,
    }),
    text: ({ step, outcome, recovered, read }) => {
      if (recovered) return `${step}: the write was found at the target; it was not repeated`;
      return `${step}: ${(read ? READ_TEXT : OUTCOME_TEXT)[outcome]}`;
    },
    replay: ({ writes }, { receiptKey, outcome, recovered }, { at }) => {
      const write = writes.get(receiptKey);
      if (!write) return;
      const { output: none, ...fields } = write.fields;
      // The output of a successful write is in the event of its step.
      write.fields = { ...fields, outcome, recovered, settledAt: at, ...(outcome !== 'succeeded' && { output: none }) };
    },
    proves: { receipt: '`outcome`, `recovered`, `settledAt` = *at*; unless it succeeded, no `output`' },
  }),
  'write.reversed': eventKind({
    summary: 'The write was rolled back.',
    fields: z.strictObject({ ...ofWrite, reversedBy: Id }),
    text: ({ step }) => `${step}: write reversed`,
    replay: ({ steps, writes }, { step: id, receiptKey, reversedBy }, { at }) => {
      for (const { fields } of steps.values()) {
        const isIt = fields.id === id && fields.status === 'succeeded' && fields.receiptKey === receiptKey;
        if (isIt) Object.assign(fields, { status: 'rolled_back', updatedAt: at });
      }
      const write = writes.get(receiptKey);
      if (write) Object.assign(write.fields, { outcome: 'reversed', reversedAt: at, reversedBy });
    },
    proves: {
      step: 'of the `succeeded` step with this id and `receiptKey`: `status` `rolled_back`, `updatedAt` = *at*',
      receipt: '`outcome` `reversed`, `reversedBy`, `reversedAt` = *at*',
    },
  }),
  'write.compensated': eventKind({
    summary: 'The result of the rollback for one write.',
    fields: Compensated,
    text: (event) => `${event.step}: rollback: ${compensationText(event)}`,
    replay: ({ run }, { step, receiptKey, outcome, reason }) => {
      run.compensation = appended(run.compensation, { step, receiptKey, outcome, reason });
    },
    proves: { run: 'the next of `compensation`: `step`, `receiptKey`, `outcome`, `reason`' },
  }),
  'write.reused': eventKind({
    summary: 'Another run had made the identical write. The step uses its receipt and writes nothing.',
    fields: z.strictObject({ ...ofWrite, firstRunId: Id }),
    text: ({ step, firstRunId }) => `${step}: ${firstRunId} already made the identical write; nothing is written again`,
    replay: (replay, event) => {
      replay.reusedLast = event;
      replay.reused.set(event.receiptKey, event.firstRunId);
    },
    proves: {
      step: 'ends the claim; the `step.succeeded` after it has this `receiptKey`',
      receipt: 'the receipt with this key may be of the run `firstRunId`, then with `outcome` `succeeded`',
    },
  }),
};

const OUTCOME_TEXT: Record<(typeof WRITE_OUTCOMES)[number], string> = {
  intent: 'the write is about to start',
  succeeded: 'written',
  reversed: 'written, later reversed',
  failed: 'not written',
  unknown: 'unknown whether the write was made',
};

const READ_TEXT: typeof OUTCOME_TEXT = {
  ...OUTCOME_TEXT,
  intent: 'the read is about to start',
  succeeded: 'read',
  failed: 'not read',
  unknown: 'unknown whether it was read',
};

export function compensationText({ outcome, reason }: Pick<Compensation, 'outcome' | 'reason'>): string {
  const why = reason === undefined ? '' : `: ${reason}`;
  switch (outcome) {
    case 'reversed':
      return 'write reversed';
    case 'drifted':
      return `not reversed${why}`;
    case 'irreversible':
      return `irreversible${why}`;
    case 'refused':
      return `the reversal was refused${why}`;
    case 'unknown':
      return `unknown whether the write was reversed${why}`;
    case 'kept':
      return 'the write remains';
  }
}
