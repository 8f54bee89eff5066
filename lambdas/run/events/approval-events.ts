import * as z from 'zod';
import { GATE_REASONS, stepIndexIn, viaText } from '../approval.ts';
import { ChannelName, Count, Derived, eventKind, Hash, Id, Ids, ofApproval, RiskTier, Time } from './event-kind.ts';
import {
  appended,
  type Fields,
  isRecord,
  listOf,
  type RecordedEvent,
  type RecordedStep,
  type Replay,
  type When,
} from './replay-state.ts';
import { requirementText } from './requirement-text.ts';

/** Who must decide. */
const requirement = {
  tier: RiskTier,
  /** How many people. */
  quorum: Count,
  /** A voter must be in one group of each list. */
  groups: z.array(Ids),
  makers: Ids,
};

/** The other writes of the phase: those that the approval covers, and those that get an approval of their own. */
const Phase = z.strictObject({
  name: Id,
  leadHash: Hash,
  writes: z.array(
    z.strictObject({
      step: Id,
      index: Count,
      actionHash: Hash,
      tool: Id,
      target: Id,
      derived: z.array(Derived).optional(),
    }),
  ),
  askedLater: z.array(z.strictObject({ step: Id, tool: Id })),
});
export type RecordedPhase = z.infer<typeof Phase>;

/** A maker; without the role, tier or group; with an outdated view of the write. */
const REFUSED_BECAUSE = ['maker', 'not_eligible', 'stale'] as const;
export type RefusedBecause = (typeof REFUSED_BECAUSE)[number];

const DECISION_PROVES =
  '; `grounds` (`policyHash`, `policies`, `reasons`), `action.tool` and `action.target` of the last `policy.decided` of the step, none of these if `asks` is `step`';

const overdue = eventKind({
  summary: 'The SLA passed without a decision, and further people were notified. The approval can still be decided.',
  fields: z.strictObject(ofApproval),
  text: ({ step }) => `${step}: no decision in time; escalated to more approvers`,
  replay: (replay, event, { at }) => changeApproval(replay, event, { escalatedAt: at }),
  proves: { approval: '`escalatedAt` = *at*' },
});

export const APPROVAL_EVENTS = {
  'approval.requested': eventKind({
    summary: 'The step stopped, and people were asked to decide.',
    fields: z.strictObject({
      ...ofApproval,
      asks: z.enum(GATE_REASONS),
      actionHash: Hash,
      ...requirement,
      /** Operators may decide, too. */
      operators: z.literal(true).optional(),
      slaAt: Time,
      expiresAt: Time,
      phase: Phase.optional(),
      /** The authors of the workflow and of the workflows that it calls, who are among the makers. */
      authors: Ids.optional(),
    }),
    text: (event, time) =>
      `${event.step}: approval requested from ${requirementText(event)}, until ${time(event.expiresAt)}`,
    tone: () => 'waiting',
    replay: (replay, event, { at, seq }) => {
      const { approvalId, step, asks, slaAt, expiresAt, actionHash, phase } = event;
      const index = stepIndexIn(approvalId);
      // An approval step proposes no write, so policy does not decide on it.
      const asked = asks === 'step' ? undefined : replay.steps.get(index);
      replay.approvals.set(approvalId, {
        ...{ approvalId: `${replay.runId}.${seq}-${index}`, step, index, asks, actionHash },
        ...{ requestedAt: at, slaAt, expiresAt, remindedAt: undefined, escalatedAt: undefined, decidedAt: undefined },
        ...{ ...requirementIn(event), ...decisionOn(asked), phase: phaseIn(phase), votes: [], edits: [] },
      });
      if (asked) asked.approvalId = approvalId;
    },
    proves: {
      approval: `\`step\`, \`index\` and \`approvalId\` (made of the run, this commit and the index, as above), \`asks\`, \`actionHash\`, \`requirement\` (\`tier\`, \`quorum\`, \`groups\`, \`operators\`), \`makers\`, \`slaAt\`, \`expiresAt\`, \`requestedAt\` = *at*, no \`votes\`, no \`edits\`; \`phase\`, of each of its writes \`step\`, \`index\`, \`actionHash\` and of the action \`tool\`, \`target\`, \`derived\`${DECISION_PROVES}`,
      step: 'unless `asks` is `step`: the step with the index in `approvalId` depends on this approval',
    },
  }),
  'approval.covered': eventKind({
    summary: 'The write of the step waits for, or uses, the approval that another write of its phase requested.',
    fields: z.strictObject({ ...ofApproval, index: Count }),
    text: ({ step, approvalId }) => `${step}: covered by the approval of its phase, ${approvalId}`,
    replay: ({ steps }, { index, approvalId }) => {
      const step = steps.get(index);
      if (step) step.approvalId = approvalId;
    },
    proves: { step: 'the step depends on this approval' },
  }),
  'approval.auto_approved': eventKind({
    summary: 'The validation mode allowed the write because the confidence reached the threshold.',
    fields: z.strictObject({ step: Id, confidence: z.number(), threshold: z.number() }),
    text: ({ step, confidence, threshold }) =>
      `${step}: approved automatically with confidence ${confidence} (threshold ${threshold})`,
  }),
  'approval.voted': eventKind({
    summary: 'A person voted.',
    fields: z.strictObject({
      ...ofApproval,
      person: Id,
      via: ChannelName,
      decision: z.enum(['approve', 'reject']),
      /** The absent person on whose behalf the delegate voted. */
      onBehalfOf: Id.optional(),
      reasonHash: Hash.optional(),
      /** The rights by which they voted: their own, or those of that person. */
      rights: z.strictObject({ role: Id, tier: Id, groups: Ids }).optional(),
    }),
    text: ({ step, person, decision, via, onBehalfOf }) =>
      `${step}: ${person} voted ${decision} ${viaText(via)}${onBehalfOf ? ` for ${onBehalfOf}` : ''}`,
    replay: ({ approvals }, event, { at }) => {
      const { approvalId, person, via, decision, onBehalfOf, reasonHash, rights } = event;
      const approval = approvals.get(approvalId);
      if (!approval) return;
      const reason = reasonHash === undefined ? undefined : { sha256: reasonHash };
      approval.votes = appended(approval.votes, { person, via, decision, onBehalfOf, reason, rights, at });
    },
    proves: {
      approval:
        'the next of `votes`: `person`, `via`, `decision`, `onBehalfOf`, `rights`, `reason` = `reasonHash`, `at` = *at*',
    },
  }),
  'approval.refused': eventKind({
    summary: 'A person tried to decide and was refused. Recorded once for each person and reason.',
    fields: z.strictObject({
      ...ofApproval,
      person: Id,
      via: ChannelName,
      decision: z.enum(['approve', 'reject', 'edit']),
      because: z.enum(REFUSED_BECAUSE),
    }),
    text: ({ step, person, decision, via, because }) =>
      `${step}: ${person} tried to ${decision} ${viaText(via)} and was refused: ${REFUSED_TEXT[because]}`,
    tone: () => 'bad',
    siem: ({ because }) => ({ severity: because === 'stale' ? 'low' : 'medium', failed: true }),
  }),
  'approval.edited': eventKind({
    summary: 'A person changed the proposed write. Earlier votes no longer count.',
    fields: z.strictObject({
      ...ofApproval,
      person: Id,
      via: ChannelName,
      fields: Ids,
      previousHash: Hash,
      actionHash: Hash,
      /** Of the edited write alone, if the approval covers a phase. */
      leadHash: Hash.optional(),
      ...requirement,
    }),
    text: ({ step, person, fields }) => `${step}: ${person} edited ${fields.join(', ')}; earlier votes are void`,
    replay: (replay, event, { at }) => {
      const { approvalId, person, via, fields, previousHash, actionHash, leadHash } = event;
      const approval = replay.approvals.get(approvalId);
      if (!approval) return;
      const changes = listOf(fields).map((field) => ({ field }));
      const edits = appended(approval.edits, { person, via, at, previousHash, changes });
      const asked = replay.steps.get(stepIndexIn(approvalId));
      Object.assign(approval, { ...requirementIn(event), ...decisionOn(asked), actionHash, votes: [], edits });
      if (isRecord(approval.phase)) approval.phase = { ...approval.phase, leadHash };
    },
    proves: {
      approval: `\`leadHash\` of a \`phase\`, \`actionHash\`, \`requirement\`, \`makers\`; no \`votes\`; the next of \`edits\`: \`person\`, \`via\`, \`previousHash\`, \`at\` = *at*, a change for each of \`fields\` in order${DECISION_PROVES}`,
    },
  }),
  'approval.decided': eventKind({
    summary: 'Enough people approved, or one rejected.',
    fields: z.strictObject({ ...ofApproval, status: z.enum(['approved', 'rejected']), people: Ids }),
    text: ({ step, status, people }) => `${step}: ${status} by ${people.join(' and ')}`,
    replay: (replay, event, when) => closeApproval(replay, event, event.status, when),
    proves: { approval: '`status`, `decidedAt` = *at*' },
  }),
  'approval.stale': eventKind({
    summary: 'The approval no longer applies to the write, so people are asked again.',
    fields: z.strictObject({
      ...ofApproval,
      index: Count,
      because: z.enum(['changed', 'expired', 'voters', 'used']),
      approvedHash: Hash,
      actionHash: Hash,
    }),
    text: ({ step, because }) => `${step}: ${STALE_TEXT[because]}; approval requested again`,
    replay: ({ steps }, { approvalId, index = stepIndexIn(approvalId) }) => {
      const step = steps.get(index);
      if (step && step.approvalId === approvalId) step.approvalId = undefined;
    },
    proves: { step: 'the step no longer depends on this approval' },
  }),
  'approval.reminded': eventKind({
    summary: 'The approvers were reminded.',
    fields: z.strictObject(ofApproval),
    text: ({ step }) => `${step}: approvers were reminded`,
    replay: (replay, event, { at }) => changeApproval(replay, event, { remindedAt: at }),
    proves: { approval: '`remindedAt` = *at*' },
  }),
  'approval.overdue': overdue,
  /** The name of `approval.overdue` in older runs. */
  'approval.escalated': { ...overdue, summary: 'The name of `approval.overdue` in bundles of earlier versions.' },
  'approval.expired': eventKind({
    summary: 'Nobody decided before the approval expired.',
    fields: z.strictObject(ofApproval),
    text: ({ step, approvalId }) => `${step}: approval ${approvalId} expired`,
    replay: (replay, event, when) => closeApproval(replay, event, 'expired', when),
    proves: { approval: '`status` `expired`, `decidedAt` = *at*' },
  }),
  'approval.canceled': eventKind({
    summary: 'The run no longer needs the approval.',
    fields: z.strictObject(ofApproval),
    text: ({ step, approvalId }) => `${step}: approval ${approvalId} is no longer needed`,
    replay: (replay, event, when) => closeApproval(replay, event, 'canceled', when),
    proves: { approval: '`status` `canceled`, `decidedAt` = *at*' },
  }),
};

const REFUSED_TEXT: Record<RefusedBecause, string> = {
  maker: 'a maker may not decide on the write',
  not_eligible: 'the person may not decide on it',
  stale: 'the write had changed',
};

const STALE_TEXT = {
  changed: 'the write differs from the approved one',
  expired: 'the approval expired before it was used',
  voters: 'a person who approved lost the right to approve it',
  used: 'the approval was for one request, and that request failed',
};

function changeApproval({ approvals }: Replay, { approvalId }: RecordedEvent, fields: Fields): void {
  const approval = approvals.get(approvalId);
  if (approval) Object.assign(approval, fields);
}

const closeApproval = (replay: Replay, event: RecordedEvent, status: unknown, { at }: When) =>
  changeApproval(replay, event, { status, decidedAt: at });

/** The id of an approval consists of its run, the commit that requested it, and the index of its step. */
const requirementIn = ({ tier, quorum, groups, operators, makers }: RecordedEvent): Fields => ({
  requirement: { tier, quorum, groups, operators },
  makers,
});

/** People approve the write that policy decided on last. */
function decisionOn(step: RecordedStep | undefined): Fields {
  if (!step?.decided) return {};
  const { tool, target, derived, policyHash, policies, reasons } = step.decided;
  return { action: { tool, target, derived }, grounds: { policyHash, policies, reasons } };
}

/** The phase as an approval entry shows it: tool and target of each write are in its action. */
function phaseIn(phase: unknown): Fields | undefined {
  if (!isRecord(phase)) return undefined;
  const writes = listOf(phase.writes).map((write) => {
    const { tool, target, derived, ...fields } = write as Fields;
    return { ...fields, action: { tool, target, derived } };
  });
  return { ...phase, writes };
}
