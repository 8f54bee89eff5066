import type { Condition } from './dynamo-transactions.ts';
import type { Receipt } from './receipt.ts';

/** Every condition of the run table has a name that says what it guards. */

export const ROW_IS_NEW: Condition = { expression: 'attribute_not_exists(#pk)' };
export const runIsAt = (seq: number): Condition => ({ expression: '#doc.#seq = :seq', values: { ':seq': seq } });
export const stepIsHeldAt = (leaseVersion: number): Condition => ({
  expression: '#doc.#leaseVersion = :leaseVersion',
  values: { ':leaseVersion': leaseVersion },
});
export const statusIs = (status: string): Condition => ({
  expression: '#doc.#status = :status',
  values: { ':status': status },
});
export const recordIsNewOrExpired = (now: string): Condition => ({
  expression: 'attribute_not_exists(#pk) OR #doc.#expiresAt <= :now',
  values: { ':now': now },
});

/** No receipt yet, one whose write certainly did not happen, or this step's own open intent from an earlier attempt. */
export const keyIsFreeFor = (receipt: Receipt): Condition => ({
  expression:
    'attribute_not_exists(#pk) OR #doc.#outcome = :failed' +
    ' OR (#doc.#outcome <> :succeeded AND #doc.#runId = :runId AND #doc.#stepIndex = :stepIndex)',
  values: {
    ':failed': 'failed',
    ':succeeded': 'succeeded',
    ':runId': receipt.runId,
    ':stepIndex': receipt.stepIndex,
  },
});
export const intentIsOurs = (receipt: Receipt): Condition => ({
  expression: '#doc.#runId = :runId AND #doc.#leaseVersion = :leaseVersion',
  values: { ':runId': receipt.runId, ':leaseVersion': receipt.leaseVersion },
});

export const leaseIsHeldAt = (leaseVersion: number): Condition => ({
  expression: '#doc.#leaseVersion = :leaseVersion AND #doc.#status = :running',
  values: { ':leaseVersion': leaseVersion, ':running': 'running' },
});
export const attemptsAre = (attempts: number): Condition => ({
  expression: '#doc.#attempts = :attempts',
  values: { ':attempts': attempts },
});
export const APPROVAL_IS_OPEN: Condition = {
  expression: '#doc.#status = :requested OR #doc.#status = :notified',
  values: { ':requested': 'requested', ':notified': 'notified' },
};
