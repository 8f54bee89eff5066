import type { OutboxEntry } from '../../outbox/outbox.ts';
import type { Lease } from '../../run/step.ts';

/** A digest that one invocation is posting. Its number is part of the mark of the message. */
export interface DigestClaim {
  number: number;
  /** All approvals of the digest, and those of them that no earlier digest has listed. */
  approvals: string[];
  added: string[];
  claimedAt: string;
  /** Until it ends, nobody else posts or searches for the message. */
  lease: Lease;
}

export interface PostedDigest {
  number: number;
  at: string;
  message: { channel: string; ts: string };
  /** The outbox entry that repeats the digest, and when. */
  repeatEntryId: string;
  repeatAt: string;
}

/** The digests of one tenant in one Slack channel. */
export interface DigestState {
  tenant: string;
  /** As approvals name it, `#approvals`. */
  channel: string;
  revision: number;
  /** The number of the last claim. */
  number: number;
  /** The approvals of the last digest that was posted. */
  listed: string[];
  posted?: PostedDigest;
  claim?: DigestClaim;
  /** Slack has refused the last attempt: no further attempt before this time. */
  notBefore?: string;
}

export const noDigests = (tenant: string, channel: string): DigestState => ({
  tenant,
  channel,
  revision: 0,
  number: 0,
  listed: [],
});

export interface DigestStore {
  digests(tenant: string, channel: string): Promise<DigestState | undefined>;
  /**
   * Replaces the state that was read, with the next revision, and in the same transaction adds and deletes outbox
   * entries. Returns the new state; undefined, with nothing written, if it was changed since it was read.
   */
  save(
    read: DigestState,
    changes: Partial<DigestState>,
    outbox?: { add: OutboxEntry; remove?: string },
  ): Promise<DigestState | undefined>;
}
