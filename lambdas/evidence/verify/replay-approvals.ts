import type { EvidenceEvent } from '../bundle/commit-entry.ts';
import type { Fields, RecordedFields, RecordedStep, Replay, When } from './replay.ts';

/** What each event tells of an approval. */
export const APPROVAL_EVENTS: RecordedFields = {
  'approval.requested': (replay, event, { at, seq }) => {
    const { approvalId, step, asks, slaAt, expiresAt, actionHash, phase } = event;
    const index = indexIn(approvalId);
    // A step that only asks people proposes nothing that policy could decide on.
    const asked = asks === 'step' ? undefined : replay.steps.get(index);
    replay.approvals.set(approvalId, {
      ...{ approvalId: `${replay.runId}.${seq}-${index}`, step, index, asks, actionHash },
      ...{ requestedAt: at, slaAt, expiresAt, remindedAt: undefined, escalatedAt: undefined, decidedAt: undefined },
      ...{ ...requirementIn(event), ...decisionOn(asked), phase: phaseIn(phase), votes: [], edits: [] },
    });
    if (asked) asked.approvalId = approvalId;
  },
  'approval.edited': (replay, event, { at }) => {
    const { approvalId, person, via, fields, previousHash, actionHash, leadHash } = event;
    const approval = replay.approvals.get(approvalId);
    if (!approval) return;
    const changes = listOf(fields).map((field) => ({ field }));
    const edits = [...listOf(approval.edits), { person, via, at, previousHash, changes }];
    const asked = replay.steps.get(indexIn(approvalId));
    Object.assign(approval, { ...requirementIn(event), ...decisionOn(asked), actionHash, votes: [], edits });
    if (isRecord(approval.phase)) approval.phase = { ...approval.phase, leadHash };
  },
  'approval.voted': ({ approvals }, event, { at }) => {
    const { approvalId, person, via, decision, onBehalfOf, reasonHash } = event;
    const approval = approvals.get(approvalId);
    if (!approval) return;
    const reason = reasonHash === undefined ? undefined : { sha256: reasonHash };
    approval.votes = [...listOf(approval.votes), { person, via, decision, onBehalfOf, reason, at }];
  },
  'approval.covered': ({ steps }, { index, approvalId }) => {
    const step = steps.get(index);
    if (step) step.approvalId = approvalId;
  },
  'approval.stale': ({ steps }, { approvalId, index = indexIn(approvalId) }) => {
    const step = steps.get(index);
    if (step && step.approvalId === approvalId) step.approvalId = undefined;
  },
  'approval.reminded': (replay, event, { at }) => note(replay, event, { remindedAt: at }),
  'approval.overdue': (replay, event, { at }) => note(replay, event, { escalatedAt: at }),
  /** Its name in older bundles. */
  'approval.escalated': (replay, event, { at }) => note(replay, event, { escalatedAt: at }),
  'approval.decided': (replay, event, when) => close(replay, event, event.status, when),
  'approval.expired': (replay, event, when) => close(replay, event, 'expired', when),
  'approval.canceled': (replay, event, when) => close(replay, event, 'canceled', when),
};

function note({ approvals }: Replay, { approvalId }: EvidenceEvent, told: Fields): void {
  const approval = approvals.get(approvalId);
  if (approval) Object.assign(approval, told);
}

const close = (replay: Replay, event: EvidenceEvent, status: unknown, { at }: When) =>
  note(replay, event, { status, decidedAt: at });

/** An approval is named after its run, the commit that asked for it, and the index of its step. */
const indexIn = (approvalId: unknown): number => Number(String(approvalId).split('-').at(-1));

const requirementIn = ({ tier, quorum, groups, operators, makers }: EvidenceEvent): Fields => ({
  requirement: { tier, quorum, groups, operators },
  makers,
});

/** What is asked for is what policy decided on last. */
function decisionOn(step: RecordedStep | undefined): Fields {
  if (!step?.decided) return {};
  const { tool, target, derived, policyHash, policies, reasons } = step.decided;
  return { action: { tool, target, derived }, grounds: { policyHash, policies, reasons } };
}

const isRecord = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

/** What a request tells of its phase: each write by tool and target, as in an action. */
function phaseIn(phase: unknown): Fields | undefined {
  if (!isRecord(phase)) return undefined;
  const writes = listOf(phase.writes).map((write) => {
    const { tool, target, derived, ...told } = write as Fields;
    return { ...told, action: { tool, target, derived } };
  });
  return { ...phase, writes };
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
