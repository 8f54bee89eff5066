import type { Lease } from '../run/step.ts';

/** A message that one invocation is posting. */
export interface NoticeClaim {
  claimedAt: string;
  /** Until it ends, nobody else posts or searches for the message. */
  lease: Lease;
}

/** One message about a run to one destination: it is posted once, however often that is tried. */
export interface Notice {
  tenant: string;
  runId: string;
  /** What is posted where. */
  id: string;
  revision: number;
  claim?: NoticeClaim;
  /** The destination refused the last attempt: no further attempt before this time. */
  notBefore?: string;
  /** When it was posted. Then nothing is left to do. */
  notifiedAt?: string;
  message?: { channel: string; ts: string };
  /** Why it is not posted: there is no such destination. Then nothing is left to do. */
  skipped?: string;
}

export type NoticeOf = Pick<Notice, 'tenant' | 'runId' | 'id'>;

export interface NoticeStore {
  notice(of: NoticeOf): Promise<Notice | undefined>;
  /** All notices of a run. */
  notices(tenant: string, runId: string): Promise<Notice[]>;
  /**
   * Replaces the notice that was read, with the next revision. Returns the new one; undefined, with nothing written, if it
   * was changed since it was read.
   */
  save(read: Notice, changes: Partial<Notice>): Promise<Notice | undefined>;
}

export const newNotice = (of: NoticeOf): Notice => ({ ...of, revision: 0 });

export const isSettled = ({ notifiedAt, skipped }: Notice): boolean =>
  notifiedAt !== undefined || skipped !== undefined;

/** A row after a change. A field that is set to undefined is removed. */
export function nextRevision<Row extends { revision: number }>(read: Row, changes: Partial<Row>): Row {
  const changed = { ...read, ...changes, revision: read.revision + 1 };
  return Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== undefined)) as Row;
}
