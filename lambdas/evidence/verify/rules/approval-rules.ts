import { canonicalJson, hashOf } from '../../../run/canonical-json.ts';
import { type Fields, isRecord } from '../../../run/events/replay-state.ts';
import { type ApprovalHistory, type Terms, termsAt } from './approval-history.ts';
import { attemptsWith } from './call-rules.ts';
import { breachAt, isUndo, lastBefore, number, records, text, texts } from './event-fields.ts';
import type { Breach, Rule } from './rule.ts';
import type { Attempt, PlacedEvent, RunHistory } from './run-history.ts';

const fieldsOf = (placed: PlacedEvent | undefined): Fields => placed?.event ?? {};

const TIERS: readonly string[] = ['low', 'medium', 'high'];

/** Why a call needs an approval; undefined if it does not. */
function whyNeeded({ steps }: RunHistory, { decided, index, wasAsked }: Attempt): string | undefined {
  if (decided?.event.verdict === 'needs_approval') return 'policy requires an approval';
  if (needsTwo(actionOf(steps.get(index)?.action, decided)))
    return 'a write with high blast radius, or a destructive one, needs two people';
  const derived = decided?.event.derived;
  if (Array.isArray(derived) && derived.length > 0 && !isUndo(index))
    return 'a part of its target derives from a model';
  return wasAsked ? 'an approval was required before' : undefined;
}

type Action = { effect: string; blastRadius: string; destructive: boolean } | undefined;
/** Of the decision, from format 2 on; else the last one of the step. */
const actionOf = (entry: Action, decided: PlacedEvent | undefined): Action =>
  isRecord(decided?.event.action) ? (decided.event.action as Action) : entry;

const needsTwo = (action: Action): boolean =>
  action !== undefined && action.effect !== 'read' && (action.blastRadius === 'high' || action.destructive);

/** The attempts that depend on an approval, each with it. */
function withApproval(
  history: RunHistory,
  problemOf: (attempt: Attempt, approval: ApprovalHistory) => string | undefined,
): Breach[] {
  return attemptsWith(history, (attempt) => {
    const approval = history.approvals.get(attempt.approvalId ?? '');
    return approval && problemOf(attempt, approval);
  });
}

const endingBefore = ({ endings }: ApprovalHistory, place: number) => lastBefore(endings, place, (each) => each.place);

/** What people approved for one step: the write that requested the approval, or another one of its phase. */
function approvedFor(approval: ApprovalHistory, { index, intended }: Attempt) {
  const terms = termsAt(approval, intended.place);
  if (index === approval.index) {
    const { tool, target, policyHash } = fieldsOf(terms.decided);
    return { actionHash: terms.leadHash, tool, target, policyHash };
  }
  return records(Object(approval.requested.event.phase).writes).find((write) => write.index === index);
}

export const APPROVAL_RULES: readonly Rule[] = [
  {
    number: 4,
    name: 'required-approval-is-requested',
    description:
      'A call depends on an approval if the last decision is `needs_approval`, if its action is not a read and has the blast radius `high` or is `destructive`, if parts of its target derive from a model (except undos), or if an approval was requested for its step before.',
    check: (history) =>
      attemptsWith(history, (attempt) => {
        const why = attempt.approvalId === undefined ? whyNeeded(history, attempt) : undefined;
        return why && `makes a call without an approval, although ${why}`;
      }),
  },
  {
    number: 5,
    name: 'approved-before-the-call',
    description: 'The approval that a call depends on was decided as `approved` before the call begins.',
    check: (history) =>
      withApproval(history, ({ intended }, approval) => {
        const { event } = endingBefore(approval, intended.place) ?? {};
        if (event?.type === 'approval.decided' && event.status === 'approved') return undefined;
        const status = event ? text(event.status) || event.type.replace('approval.', '') : 'still open';
        return `makes a call although its approval ${approval.approvalId} is ${status}`;
      }),
  },
  {
    number: 6,
    name: 'approved-call-is-made',
    description:
      'The approval is for the step of the call, and has the action hash, tool, target and policy set of the last decision. The hash of a phase is computed from the hashes of its writes.',
    check: (history) => [
      ...withApproval(history, (attempt, approval) => {
        const approved = approvedFor(approval, attempt);
        if (!approved) return `depends on ${approval.approvalId}, which does not cover its step`;
        const { event } = attempt.decided ?? {};
        const other = ['actionHash', 'tool', 'target', 'policyHash'].find(
          (field) => field in approved && Object(approved)[field] !== event?.[field],
        );
        return other && `makes a call with another ${other} than ${approval.approvalId} approved`;
      }),
      ...[...history.approvals.values()].flatMap((approval) =>
        approval.terms.flatMap((terms) => ofPhase(approval, terms)),
      ),
    ],
  },
  {
    number: 7,
    name: 'approval-has-not-expired',
    description:
      'Votes, edits, the decision and the calls that depend on the approval are before its `expiresAt`. `approval.expired` is not before `expiresAt`, and `expiresAt` is after the request.',
    check: (history) => [
      ...withApproval(history, ({ intended }, approval) => {
        const { expiresAt } = approval.requested.event;
        return intended.at < text(expiresAt)
          ? undefined
          : `makes a call after its approval expired at ${text(expiresAt)}`;
      }),
      ...[...history.approvals.values()].flatMap(outOfTime),
    ],
  },
  {
    number: 8,
    name: 'enough-is-required',
    description:
      'An approval requires at least one person, and at least the tier, quorum and groups of the decision that it is about. A write that is destructive or has high blast radius also requires two people and the tier `high`.',
    check: (history) => [
      ...[...history.approvals.values()].flatMap((approval) =>
        approval.terms.flatMap((terms) =>
          asked(terms.placed, terms, terms.decided, twoFor(history, approval.index, terms.decided)),
        ),
      ),
      ...history.events.flatMap((placed) => covered(history, placed)),
    ],
  },
];

function ofPhase({ requested }: ApprovalHistory, { placed, actionHash, leadHash }: Terms): Breach[] {
  const phase = Object(requested.event.phase);
  if (requested.event.phase === undefined) return [];
  const writes = records(phase.writes).map(({ step, actionHash: hash }) => ({ step, actionHash: hash }));
  const askedLater = records(phase.askedLater).map(({ step }) => step);
  const due = hashOf({ phase: phase.name, leadHash, writes, askedLater });
  return due === actionHash ? [] : [breachAt(placed, 'has an action hash that is not that of the writes of its phase')];
}

function outOfTime({ requested, terms, votes, endings }: ApprovalHistory): Breach[] {
  const expiresAt = text(requested.event.expiresAt);
  const early = endings.filter(({ event, at }) => event.type === 'approval.expired' && at < expiresAt);
  const decided = endings.filter(({ event }) => event.type === 'approval.decided');
  const late = [...terms.map(({ placed }) => placed), ...votes, ...decided].filter(({ at }) => at >= expiresAt);
  return [
    ...early.map((each) => breachAt(each, `lets an approval expire before ${expiresAt}`)),
    ...late.map((each) => breachAt(each, `is not before the expiry of the approval, ${expiresAt}`)),
  ];
}

const twoFor = ({ steps }: RunHistory, index: number, decided: PlacedEvent | undefined): boolean =>
  needsTwo(actionOf(steps.get(index)?.action, decided));

/** Whether the terms of an approval demand what the decision demands. */
function asked(placed: PlacedEvent, terms: Terms, decided: PlacedEvent | undefined, two: boolean): Breach[] {
  const { tier, quorum, groups } = fieldsOf(decided);
  const needs = decided?.event.verdict === 'needs_approval';
  const [people, risk] = [two ? 2 : 1, two ? 'high' : 'low'];
  const due = needs ? Math.max(people, number(quorum)) : people;
  const dueTier = needs && isBelow(risk, text(tier)) ? text(tier) : risk;
  const sets = needs && Array.isArray(groups) ? groups.map(texts) : [];
  const missing = sets.find(
    (set) => !terms.groups.some((own) => own.length > 0 && own.every((group) => set.includes(group))),
  );
  if (!(terms.quorum >= due)) return [breachAt(placed, `requires ${terms.quorum} people; ${due} must approve`)];
  if (isBelow(terms.tier, dueTier))
    return [breachAt(placed, `requires the tier ${terms.tier}; ${dueTier} must approve`)];
  if (missing) return [breachAt(placed, `does not require a member of ${canonicalJson(missing)}`)];
  if (terms.operators && needs) return [breachAt(placed, 'lets operators decide although policy requires an approval')];
  return [];
}

const isBelow = (tier: string, due: string): boolean => TIERS.indexOf(tier) < TIERS.indexOf(due);

/** A write that another approval covers gets the people that it needs by that approval. */
function covered(history: RunHistory, placed: PlacedEvent): Breach[] {
  const { event, place } = placed;
  if (event.type !== 'approval.covered') return [];
  const approval = history.approvals.get(text(event.approvalId));
  if (!approval) return [];
  const decided = history.coveredDecisions.get(placed);
  return asked(placed, termsAt(approval, place), decided, twoFor(history, number(event.index), decided));
}
