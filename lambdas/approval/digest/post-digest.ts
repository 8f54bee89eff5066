import { withinDeadline } from '../../connectors/attempt-deadline.ts';
import { TargetRefused } from '../../connectors/target-errors.ts';
import { type Clock, type Ids, isoNow, type Log } from '../../entry/ports.ts';
import { pauseAfter } from '../../notify/post-once.ts';
import { newOutboxEntry } from '../../outbox/outbox.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { AttemptTime } from '../../proposal/attempt-time.ts';
import { type Approval, runIdOf } from '../../run/approval.ts';
import { hasExpired, IN_PROCESS_LEASE, later, newLease } from '../../run/lease.ts';
import type { RunStore } from '../../run/run-store.ts';
import { closeDigest } from './close-digest.ts';
import { type Collected, collectOverdue, isDigestDue, listEntryId } from './collect-overdue.ts';
import { type DigestClaim, type DigestState, type DigestStore, noDigests, type PostedDigest } from './digest-store.ts';

/** Unless `overdueDigestMinutes` of the tenant's settings says otherwise. */
const REPEAT_MINUTES = 60;
const COMPLETED_AT_ONCE = 25;

export interface Digest {
  tenant: string;
  channel: string;
  number: number;
  approvals: Approval[];
  /** The ids of those that no earlier digest has listed. */
  added: readonly string[];
}

/** Digests in the tenant's Slack workspace. */
export interface DigestMessages {
  /** False where the tenant has no Slack. */
  reaches(tenant: string): Promise<boolean>;
  post(digest: Digest): Promise<PostedDigest['message']>;
  /** The message of an earlier attempt, if there is one. */
  find(
    of: Pick<Digest, 'tenant' | 'channel' | 'number'> & { since: string },
  ): Promise<PostedDigest['message'] | undefined>;
  /** Shows that all approvals of the digest are closed. */
  close(tenant: string, message: PostedDigest['message'], approvals: readonly Approval[]): Promise<void>;
}

export interface Digester {
  runs: Pick<RunStore, 'approval' | 'approvals' | 'openOutbox' | 'completeOutboxEntry'>;
  digests: DigestStore;
  messages: DigestMessages;
  definitions: Pick<Definitions, 'settings'>;
  clock: Clock;
  ids: Ids;
  log: Log;
  timeLeftMs: () => number;
}

export interface DigestRequest {
  kind: 'list_overdue' | 'repeat_digest';
  entryId: string;
  tenant: string;
  runId: string;
  approvalId: string;
}

/**
 * Posts one digest of the overdue approvals of a channel, if one is due:
 *
 *   read the state -> collect overdue approvals -> claim a number -> post, marked with it -> settle -> complete the entries
 *
 * A claim has a lease like a step that writes: only its owner posts, and only while the message arrives before the lease
 * ends. After that, the next invocation searches for the mark: it settles the digest, or drops the claim and collects again.
 * The outbox entry of an approval stays until a digest that lists it is settled, so nothing is lost while Slack is down.
 */
export async function postDigest(digester: Digester, request: DigestRequest): Promise<void> {
  const { runs, digests, messages, clock } = digester;
  const { kind, entryId, tenant, runId, approvalId } = request;
  const approval = await runs.approval(tenant, runId, approvalId);
  if (!approval || !(await messages.reaches(tenant))) return runs.completeOutboxEntry(entryId);
  const { channel } = approval;
  const state = await withoutClaim(digester, (await digests.digests(tenant, channel)) ?? noDigests(tenant, channel));
  const now = isoNow(clock);
  if (!state || (state.notBefore !== undefined && state.notBefore > now)) return;
  const asked = kind === 'list_overdue' ? [approvalId] : [];
  const collected = await collectOverdue(runs, state, { asked, now });
  await complete(digester, collected.completed);
  if (isDigestDue(state, collected, now)) return claimAndPost(digester, state, collected, now);
  if (kind !== 'repeat_digest') return;
  if (state.posted?.repeatEntryId !== entryId) return runs.completeOutboxEntry(entryId);
  await closeDigest(digester, state);
}

/** The state without a claim; undefined while another invocation is posting, or if Slack cannot be searched. */
async function withoutClaim(digester: Digester, state: DigestState): Promise<DigestState | undefined> {
  const { tenant, channel, claim } = state;
  if (!claim) return state;
  if (!hasExpired(claim.lease, isoNow(digester.clock))) return undefined;
  const { number, claimedAt: since } = claim;
  try {
    const message = await digester.messages.find({ tenant, channel, number, since });
    return message ? await settle(digester, state, claim, message) : await drop(digester, state);
  } catch (error) {
    if (!(error instanceof TargetRefused)) throw error;
    digester.log.warn('Slack could not be searched for a digest; the sweeper tries again', { tenant, channel, error });
    return undefined;
  }
}

async function claimAndPost(
  digester: Digester,
  read: DigestState,
  { approvals, added }: Collected,
  now: string,
): Promise<void> {
  const { tenant, channel } = read;
  const claim: DigestClaim = {
    number: read.number + 1,
    approvals: approvals.map(({ approvalId }) => approvalId),
    added: added.map(({ approvalId }) => approvalId),
    claimedAt: now,
    lease: newLease(digester.ids.next('digest'), now, IN_PROCESS_LEASE),
  };
  const state = await digester.digests.save(read, { number: claim.number, claim, notBefore: undefined });
  // Another invocation was first.
  if (!state) return;
  const digest = { tenant, channel, number: claim.number, approvals, added: claim.added };
  try {
    const time = new AttemptTime(digester, { lease: claim.lease });
    const message = await withinDeadline(time, () => digester.messages.post(digest));
    await settle(digester, state, claim, message);
  } catch (error) {
    await handleFailure(digester, state, error);
  }
}

/** The outbox entries stay, so the sweeper tries again. */
async function handleFailure(digester: Digester, state: DigestState, error: unknown): Promise<void> {
  const { tenant, channel } = state;
  const pauseMs = pauseAfter(error);
  digester.log.warn('a digest could not be posted; the sweeper tries again', { tenant, channel, error });
  if (pauseMs !== undefined) await drop(digester, state, later(isoNow(digester.clock), pauseMs));
}

const drop = ({ digests }: Digester, state: DigestState, notBefore?: string) =>
  digests.save(state, { claim: undefined, notBefore });

/** The digest is posted: its approvals are listed. Undefined if another invocation has settled it. */
async function settle(
  digester: Digester,
  state: DigestState,
  { number, approvals, added }: DigestClaim,
  message: PostedDigest['message'],
): Promise<DigestState | undefined> {
  const { tenant, posted: last } = state;
  const at = isoNow(digester.clock);
  const { overdueDigestMinutes = REPEAT_MINUTES } = await digester.definitions.settings(tenant);
  const repeatAt = later(at, overdueDigestMinutes * 60_000);
  const [approvalId = ''] = approvals;
  const repeats = { kind: 'repeat_digest', tenant, runId: runIdOf(approvalId), approvalId, number } as const;
  const add = { ...newOutboxEntry(repeats, at), dueAt: repeatAt };
  const posted = { number, at, message, repeatEntryId: add.id, repeatAt };
  const settled = await digester.digests.save(
    state,
    { claim: undefined, notBefore: undefined, listed: approvals, posted },
    { add, ...(last && { remove: last.repeatEntryId }) },
  );
  if (!settled) return undefined;
  await complete(
    digester,
    added.map((id) => listEntryId(tenant, id)),
  );
  // All of them may have been decided while it was posted.
  await closeDigest(digester, settled);
  return settled;
}

async function complete({ runs }: Digester, entryIds: readonly string[]): Promise<void> {
  for (let at = 0; at < entryIds.length; at += COMPLETED_AT_ONCE) {
    const some = entryIds.slice(at, at + COMPLETED_AT_ONCE);
    for (const completed of await Promise.allSettled(some.map((entryId) => runs.completeOutboxEntry(entryId)))) {
      if (completed.status === 'rejected') throw completed.reason;
    }
  }
}
