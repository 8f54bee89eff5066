export const APPROVAL_SCHEMA_VERSION = 1;

/** An approval nobody decides ends as `expired`, never as a human "no". */
export const APPROVAL_EXPIRES_AFTER_MS = 24 * 60 * 60 * 1000;

/** A person's permission for one step of one run, held open by a Step Functions execution of the same name. */
export interface Approval {
  schemaVersion: typeof APPROVAL_SCHEMA_VERSION;
  approvalId: string;
  tenant: string;
  runId: string;
  stepIndex: number;
  stepId: string;
  status: 'requested' | 'notified' | 'approved' | 'rejected' | 'expired' | 'canceled';
  requestedAt: string;
  expiresAt: string;
}
