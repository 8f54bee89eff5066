import type { ReceiptWrite } from '../commit.ts';
import type { Receipt } from '../receipt.ts';
import { docHash, type Item } from './dynamo-items.ts';
import type { Condition } from './dynamo-transactions.ts';

/** Every condition of the run table has a name that says what it requires. */

export const ROW_EXISTS: Condition = { expression: 'attribute_exists(#pk)' };
export const ROW_IS_NEW: Condition = { expression: 'attribute_not_exists(#pk)' };
/** The row has not changed since it was read, or still does not exist. */
export const rowIsStill = (read: Item | undefined): Condition =>
  read ? { expression: '#doc = :doc', values: { ':doc': read.doc?.S ?? read.doc?.B } } : ROW_IS_NEW;
/** Its row may be some commits older than the last one. Two commits after the same one have the same key, and one is lost. */
export const runIsBefore = (seq: number): Condition => ({ expression: '#seq < :seq', values: { ':seq': seq } });
export const runIsAt = (seq: number): Condition => ({ expression: '#seq = :seq', values: { ':seq': seq } });
export const revisionIs = (revision: number): Condition => ({
  expression: '#revision = :revision',
  values: { ':revision': revision },
});
/** The row has not changed since it was read, or still does not exist, which is read as revision 0. */
export const revisionIsStill = (read: number): Condition => (read === 0 ? ROW_IS_NEW : revisionIs(read));
/** An earlier version stored tokens without a number. */
export const tokenIsNotLaterThan = (waitNumber: number): Condition => ({
  expression: 'attribute_not_exists(#waitNumber) OR #waitNumber <= :waitNumber',
  values: { ':waitNumber': waitNumber },
});
export const recordIsNewOrExpired = (now: string): Condition => ({
  expression: 'attribute_not_exists(#pk) OR #expiresAt <= :now',
  values: { ':now': now },
});

/** No receipt, one whose write was not made or was undone, or the open intent of an earlier attempt of this step. */
const keyIsFreeFor = (receipt: Receipt): Condition => ({
  expression:
    'attribute_not_exists(#pk) OR #outcome = :failed OR #outcome = :reversed' +
    ' OR (#outcome <> :succeeded AND #runId = :runId AND #stepIndex = :stepIndex)',
  values: {
    ':failed': 'failed',
    ':reversed': 'reversed',
    ':succeeded': 'succeeded',
    ':runId': receipt.runId,
    ':stepIndex': receipt.stepIndex,
  },
});
const intentIsOurs = (receipt: Receipt): Condition => ({
  expression: '#runId = :runId AND #leaseVersion = :leaseVersion',
  values: { ':runId': receipt.runId, ':leaseVersion': receipt.leaseVersion },
});

const receiptIsStill = (read: Receipt): Condition => ({
  expression: '#docHash = :docHash',
  values: { ':docHash': docHash(read) },
});
export function receiptIsAs({ receipt, expects }: ReceiptWrite): Condition {
  if (expects === 'free') return keyIsFreeFor(receipt);
  return expects === 'ours' ? intentIsOurs(receipt) : receiptIsStill(expects.asRead);
}

/** The lease was renewed before, and nobody has taken it from its holder. */
export const leaseIsHeldAt = (leaseVersion: number): Condition => ({
  expression: '#leaseVersion = :leaseVersion AND #status = :held',
  values: { ':leaseVersion': leaseVersion, ':held': 'held' },
});
/** Nobody has taken the lease from its holder. An earlier one of the step may have been taken, and our own renewal may be sent again. */
export const leaseIsNotTaken = (leaseVersion: number): Condition => ({
  expression:
    'attribute_not_exists(#pk) OR #leaseVersion < :leaseVersion OR (#leaseVersion = :leaseVersion AND #status = :held)',
  values: { ':leaseVersion': leaseVersion, ':held': 'held' },
});
export const attemptsAre = (attempts: number): Condition => ({
  expression: '#attempts = :attempts',
  values: { ':attempts': attempts },
});

/** Who posts a card counts an attempt first. Another entry, or none, starts an execution and posts nothing. */
export const CARD_IS_NOT_BEING_POSTED: Condition = {
  expression: 'attribute_not_exists(#announce) OR #attempts = :none',
  values: { ':none': 0 },
};

/** For an entry that another program wrote. */
export const ATTEMPTS_ARE_NOT_COUNTED: Condition = {
  expression: 'attribute_exists(#pk) AND NOT attribute_type(#attempts, :number)',
  values: { ':number': 'N' },
};

/** A run that ended or has a newer commit has another due time or none. */
export const dueTimeIs = (sortKey: string): Condition => ({
  expression: '#dueAt = :dueAt',
  values: { ':dueAt': sortKey },
});
