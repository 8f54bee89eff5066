import type { RecordedFields } from './replay.ts';

/** Nothing of what follows an intent. */
const OPEN = { settledAt: undefined, recovered: undefined, reversedAt: undefined, reversedBy: undefined };

/** What each event tells of a receipt. */
export const WRITE_EVENTS: RecordedFields = {
  'write.intended': (replay, { step, receiptKey: key, tool, target, requestHash }, { at }) => {
    const { claim, decided, approvalId } = replay.claimedLast ?? {};
    const grounds = decided && { policyHash: decided.policyHash, policies: decided.policies, approvalId };
    replay.writes.set(key, {
      shows: {
        ...{ key, runId: replay.runId, step, tool, target, requestHash, intentAt: at, grounds },
        ...{ index: claim?.index, attempt: claim?.attempt, leaseVersion: claim?.leaseVersion },
        ...{ outcome: 'intent', ...OPEN, output: undefined },
      },
      intentsAt: [...(replay.writes.get(key)?.intentsAt ?? []), at],
    });
  },
  'write.settled': ({ writes }, { receiptKey, outcome, recovered }, { at }) => {
    const write = writes.get(receiptKey);
    if (!write) return;
    const { output: none, ...shows } = write.shows;
    // What a success gave is told by its step.
    write.shows = { ...shows, outcome, recovered, settledAt: at, ...(outcome !== 'succeeded' && { output: none }) };
  },
  /** A write and its step end in one commit, with one output. */
  'step.succeeded': ({ writes, steps }, { index, outputHash }) => {
    const write = writes.get(steps.get(index)?.claim?.receiptKey);
    if (write) write.shows.output = { sha256: outputHash };
  },
  'write.reversed': ({ writes }, { receiptKey, reversedBy }, { at }) => {
    const write = writes.get(receiptKey);
    if (write) Object.assign(write.shows, { outcome: 'reversed', reversedAt: at, reversedBy });
  },
  'write.reused': ({ reused }, { receiptKey, firstRunId }) => {
    reused.set(receiptKey, firstRunId);
  },
};
