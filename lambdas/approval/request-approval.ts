import type { Names } from '../connectors/connector.ts';
import { isAnnouncedFirst, newOutboxEntry } from '../outbox/outbox.ts';
import type { ApprovalRequirement, Environment, Grounds, ProposedAction } from '../policy/policy.ts';
import {
  APPROVAL_EXPIRES_AFTER_MS,
  APPROVAL_MAX_BYTES,
  APPROVAL_SCHEMA_VERSION,
  type Approval,
  type GateReason,
  SLA_MS,
} from '../run/approval.ts';
import { type ApprovalPhase, approvedTogether, recordedPhase } from '../run/approval-phase.ts';
import { CountersignError } from '../run/errors.ts';
import { later } from '../run/lease.ts';
import type { TouchedState } from '../run/receipt.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { StepFacts } from '../run/step.ts';
import type { RunState } from '../run-changes/run-changer.ts';
import { makerNames } from './texts/maker-names.ts';

const DEFAULT_CHANNEL = '#approvals';
/** People are reminded when this share of their time has passed. */
const REMIND_AFTER_SHARE = 0.5;

export interface ApprovalRequest {
  step: StepFacts;
  asks: GateReason;
  actionHash: string;
  requirement: ApprovalRequirement;
  grounds: Grounds;
  makers: string[];
  environment: Environment;
  /** The write that waits for the approval; an `approval` step has only a message. */
  write?: {
    input: unknown;
    action: ProposedAction;
    before?: TouchedState;
    after?: TouchedState;
    unread?: string;
    names?: Names;
  };
  message?: string;
  /** The other writes of the phase, in mode `per_phase`. */
  rest?: Pick<ApprovalPhase, 'writes' | 'askedLater'>;
}

/** One per request: the number of the commit makes it unique. */
export const newApprovalId = ({ before }: RunDraft, { index }: StepFacts) =>
  `${before.runId}.${before.seq + 1}-${index}`;

/** Puts the step into `waiting_approval`, with its approval and an outbox entry that posts the card and starts the state machine. */
export function requestApproval(
  state: Pick<RunState, 'workflow' | 'settings' | 'trigger'>,
  draft: RunDraft,
  request: ApprovalRequest,
): void {
  const { step, asks, requirement, grounds, makers, write, message } = request;
  const phase = phaseOf(state, request);
  const namedMakers = makerNames(state.trigger, makers, write?.names);
  const actionHash = approvedTogether(request.actionHash, phase);
  const { tenant, runId, automation, workflow, enrichment, subject } = draft.run;
  const approval: Approval = {
    schemaVersion: APPROVAL_SCHEMA_VERSION,
    approvalId: newApprovalId(draft, step),
    tenant,
    runId,
    stepIndex: step.index,
    stepId: step.id,
    status: 'requested',
    revision: 1,
    ...times(state, draft.at, request.environment),
    automation,
    workflow,
    title: enrichment?.title ?? automation,
    ...(subject !== undefined && { subject }),
    asks,
    ...(write && { action: write.action, before: write.before, after: write.after }),
    ...(write?.names && { names: write.names }),
    ...(write?.unread !== undefined && { unread: write.unread }),
    ...(message !== undefined && { message }),
    ...(phase && { phase }),
    actionHash,
    grounds,
    requirement,
    makers,
    ...(namedMakers && { makerNames: namedMakers }),
    votes: [],
    edits: [],
    channel: state.workflow.approvals.channel ?? state.settings.approvalsChannel ?? DEFAULT_CHANNEL,
  };
  assertFits(approval, write?.input);
  const { approvalId, remindAt, slaAt, expiresAt } = approval;
  const { author, calls = [] } = state.workflow;
  const authors = [...new Set([author, ...calls.map((called) => called.author)].filter((each) => each !== undefined))];
  draft
    .put({
      ...step,
      status: 'waiting_approval',
      approvalId,
      expiresAt,
      ...(write && { input: write.input }),
    })
    .openApproval(approval)
    .record({
      type: 'approval.requested',
      step: step.id,
      approvalId,
      asks,
      actionHash,
      ...requirement,
      makers,
      slaAt,
      expiresAt,
      ...(phase && { phase: recordedPhase(phase) }),
      ...(authors.length > 0 && { authors }),
    })
    .enqueue(
      newOutboxEntry(
        {
          kind: 'start_approval',
          tenant,
          runId,
          approvalId,
          clocks: { remindAt, slaAt, expiresAt },
          ...(isAnnouncedFirst(approval) && { announce: true as const }),
        },
        draft.at,
      ),
    );
}

function phaseOf(
  { workflow }: Pick<RunState, 'workflow'>,
  { step, actionHash, rest }: ApprovalRequest,
): ApprovalPhase | undefined {
  const name = workflow.steps[step.index]?.phase;
  if (!rest || name === undefined || rest.writes.length + rest.askedLater.length === 0) return undefined;
  return { name, leadHash: actionHash, ...rest };
}

/** An approval must fit into one row with the step that waits for it. */
export function assertFits(approval: Approval, input: unknown): void {
  const bytes = textBytes([approval, input]);
  if (bytes <= APPROVAL_MAX_BYTES) return;
  throw new CountersignError(
    'INPUT_INVALID',
    `the approval of ${approval.stepId} has ${bytes} bytes of text; the limit is ${APPROVAL_MAX_BYTES}; write less in one step`,
  );
}

/** Bytes of JSON with each text counted once: a copy adds almost nothing to a compressed row. */
function textBytes(value: unknown): number {
  const texts = new Set<string>();
  JSON.stringify(value, (key, part: unknown) => {
    texts.add(key);
    if (typeof part !== 'object') texts.add(String(part));
    return part;
  });
  return Buffer.byteLength(JSON.stringify([...texts]));
}

function times({ workflow: { approvals } }: Pick<RunState, 'workflow'>, at: string, environment: Environment) {
  const expiresMs =
    approvals.expiresSeconds === undefined ? APPROVAL_EXPIRES_AFTER_MS : approvals.expiresSeconds * 1000;
  // The time of the workflow is used as it is; the default time is shortened for an approval that expires soon.
  const slaMs =
    approvals.slaSeconds === undefined ? Math.min(SLA_MS[environment], expiresMs / 2) : approvals.slaSeconds * 1000;
  return {
    requestedAt: at,
    remindAt: later(at, slaMs * REMIND_AFTER_SHARE),
    slaAt: later(at, slaMs),
    expiresAt: later(at, expiresMs),
  };
}
