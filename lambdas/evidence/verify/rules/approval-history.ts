import { indexOfApproval, lastBefore, number, personOf, text, texts } from './event-fields.ts';
import type { PlacedEvent } from './run-history.ts';

/** What people are asked to approve: by the request, then by each edit. */
export interface Terms {
  placed: PlacedEvent;
  /** The decision of policy that it is about; absent for an `approval` step. */
  decided?: PlacedEvent;
  actionHash: string;
  /** The hash of the write that requested the approval, without the rest of its phase. */
  leadHash: string;
  tier: string;
  quorum: number;
  groups: string[][];
  operators: boolean;
  makers: string[];
  /** The makers, and the people for whom machines among them act. */
  makersAndPeople: ReadonlySet<string>;
}

/** Everything that happened to one approval. */
export interface ApprovalHistory {
  approvalId: string;
  /** The index of the step that requested it. */
  index: number;
  requested: PlacedEvent;
  /** At least one. */
  terms: Terms[];
  votes: PlacedEvent[];
  /** Decisions, expiries and cancellations; an honest approval has at most one. */
  endings: PlacedEvent[];
}

/** The terms that were valid at some position. */
export const termsAt = ({ terms }: ApprovalHistory, place: number): Terms =>
  lastBefore(terms, place + 1, ({ placed }) => placed.place) ?? (terms[0] as Terms);

const ENDS: readonly string[] = ['approval.decided', 'approval.expired', 'approval.canceled'];

export class ApprovalHistories {
  readonly all = new Map<string, ApprovalHistory>();

  /** `decided`: the last decision of policy on the step of the event. */
  take(placed: PlacedEvent, decided: PlacedEvent | undefined): void {
    const { event } = placed;
    const approvalId = text(event.approvalId);
    if (event.type === 'approval.requested') {
      const terms = [termsOf(placed, decided)];
      const index = indexOfApproval(approvalId);
      this.all.set(approvalId, { approvalId, index, requested: placed, terms, votes: [], endings: [] });
      return;
    }
    const approval = this.all.get(approvalId);
    if (!approval) return;
    if (event.type === 'approval.edited') approval.terms.push(termsOf(placed, decided));
    if (event.type === 'approval.voted') approval.votes.push(placed);
    if (ENDS.includes(event.type)) approval.endings.push(placed);
  }
}

function termsOf(placed: PlacedEvent, decided: PlacedEvent | undefined): Terms {
  const { actionHash, phase, leadHash, tier, quorum, groups, operators, makers, asks } = placed.event;
  const named = texts(makers);
  const lead = leadHash ?? Object(phase).leadHash ?? actionHash;
  return {
    placed,
    ...(asks !== 'step' && decided && { decided }),
    ...{ actionHash: text(actionHash), leadHash: text(lead), tier: text(tier), quorum: number(quorum) },
    groups: Array.isArray(groups) ? groups.map(texts) : [],
    ...{ operators: operators === true, makers: named },
    makersAndPeople: new Set(named.flatMap((maker) => [maker, personOf(maker)])),
  };
}
