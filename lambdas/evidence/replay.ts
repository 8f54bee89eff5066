import type { EvidenceCommit, EvidenceEvent } from './commit-entry.ts';

/** What the commits say last of each thing, read from the first to the last. */
export interface Replay {
  accepted?: EvidenceEvent;
  ended?: { event: EvidenceEvent; at: string };
  /** The last ending of each step, by index. */
  steps: Map<unknown, EvidenceEvent>;
  writes: Map<unknown, ReplayedWrite>;
  /** The run each reused write was made by, by receipt key. */
  reused: Map<unknown, unknown>;
  approvals: Map<unknown, ReplayedApproval>;
}

/** By whom a write was last intended, and what became of it. */
interface ReplayedWrite {
  intended?: EvidenceEvent;
  outcome?: unknown;
}

export interface ReplayedApproval {
  requested?: EvidenceEvent;
  /** What it is for, after the last edit. */
  actionHash?: unknown;
  /** How it was closed; absent if it was still open. */
  status?: unknown;
  votes: EvidenceEvent[];
}

export function replayOf(commits: readonly EvidenceCommit[]): Replay {
  const replay: Replay = { steps: new Map(), writes: new Map(), reused: new Map(), approvals: new Map() };
  for (const { at, events } of commits) {
    for (const event of events) apply(replay, event, at);
  }
  return replay;
}

function apply(replay: Replay, event: EvidenceEvent, at: string): void {
  switch (event.type) {
    case 'run.accepted':
      replay.accepted ??= event;
      return;
    case 'run.status_changed':
      replay.ended = { event, at };
      return;
    case 'step.succeeded':
    case 'step.failed':
    case 'step.canceled':
      replay.steps.set(event.index, event);
      return;
    case 'write.intended':
      replay.writes.set(event.receiptKey, { intended: event, outcome: 'intent' });
      return;
    case 'write.settled':
      replay.writes.set(event.receiptKey, { ...replay.writes.get(event.receiptKey), outcome: event.outcome });
      return;
    case 'write.reversed':
      replay.writes.set(event.receiptKey, { ...replay.writes.get(event.receiptKey), outcome: 'reversed' });
      return;
    case 'write.reused':
      replay.reused.set(event.receiptKey, event.firstRunId);
      return;
    default:
      if (event.type.startsWith('approval.')) applyToApproval(replay, event);
  }
}

function applyToApproval({ approvals }: Replay, event: EvidenceEvent): void {
  if (event.approvalId === undefined) return;
  const before = approvals.get(event.approvalId) ?? { votes: [] };
  approvals.set(event.approvalId, approvalAfter(before, event));
}

function approvalAfter(before: ReplayedApproval, event: EvidenceEvent): ReplayedApproval {
  switch (event.type) {
    case 'approval.requested':
      return { ...before, requested: event, actionHash: event.actionHash };
    case 'approval.edited':
      return { ...before, actionHash: event.actionHash, votes: [] };
    case 'approval.voted':
      return { ...before, votes: [...before.votes, event] };
    case 'approval.decided':
      return { ...before, status: event.status };
    case 'approval.expired':
      return { ...before, status: 'expired' };
    case 'approval.canceled':
      return { ...before, status: 'canceled' };
    default:
      return before;
  }
}
