import { type Decider, type Decision, decide } from '../../approval/decide.ts';
import { missingApprovers, sentenceText } from '../../approval/texts/missing-approvers.ts';
import { Problem } from '../../entry/http.ts';
import { isoNow } from '../../entry/ports.ts';
import type { Person } from '../../people/people.ts';
import { type Approval, isOpen, runIdOf } from '../../run/approval.ts';
import type { Caller } from '../authorizer/caller.ts';
import { approvalRoutes, type DecisionBody } from '../contract/approvals.ts';
import type { Contract } from '../contract/index.ts';
import { executionApprovalRoutes } from '../contract/runs/executions.ts';
import { approvalOfStep, assertSeen, orStale } from '../executions/approve-step.ts';
import { approvalTask } from '../executions/execution-view.ts';
import { type Paged, readPage } from '../paging.ts';
import { router } from '../router.ts';
import { forDecision } from './for-decision.ts';
import { listApprovals } from './list-approvals.ts';

export type ApprovalsPorts = Decider & Paged;

const routes = { ...approvalRoutes, ...executionApprovalRoutes };

export const handleApprovals = router<ApprovalsPorts, Contract['approvals']>(routes, {
  async listApprovals(ports, { caller, query: { status, mine, ...wanted } }) {
    // A cursor is valid for one filter only.
    const list = `${caller.tenant}/approvals/${status}/${mine === 'true' ? caller.person : 'all'}`;
    const page = await readPage(ports, list, wanted, (place) =>
      listApprovals(ports, caller, { status, mine: mine === 'true', ...place }),
    );
    const approvals = await withWarnings(ports, caller.tenant, page.items);
    return { status: 200, body: { approvals, nextCursor: page.nextCursor } };
  },

  async getApproval(ports, { caller, params: { id } }) {
    const approval = await ports.runs.approval(caller.tenant, runIdOf(id), id);
    if (!approval) throw new Problem(404, 'NOT_FOUND', `there is no approval ${id}`);
    const people = await ports.definitions.people(caller.tenant);
    const at = isoNow(ports.clock);
    const shown = withWarning(approval, people, at);
    return { status: 200, body: { ...shown, forDecision: forDecision(approval, caller, people, at) } };
  },

  async decideApproval(ports, { caller, params, body }) {
    return { status: 200, body: await decideAs(ports, caller, params.id, body) };
  },

  async approveRun(ports, { caller, params, body }) {
    const approvalId = await onlyOpenApproval(ports, caller, params.id);
    return { status: 200, body: await decideAs(ports, caller, approvalId, { decision: 'approve', ...body }) };
  },

  async rejectRun(ports, { caller, params, body }) {
    const approvalId = await onlyOpenApproval(ports, caller, params.id);
    return { status: 200, body: await decideAs(ports, caller, approvalId, { decision: 'reject', ...body }) };
  },

  async approveExecutionStep(ports, { caller, params, body: { step_number, approved, action_hash, notes, ...body } }) {
    const wanted = { tenant: caller.tenant, runId: params.id, step_number };
    if (body.approver_role !== undefined && body.approver_role !== caller.role) {
      throw new Problem(403, 'FORBIDDEN', `approver_role: you act as ${caller.role}, not as ${body.approver_role}`);
    }
    if (!approved && !notes) throw new Problem(400, 'BAD_REQUEST', 'notes: say why you reject it');
    const approval = await approvalOfStep(ports.runs, wanted);
    assertSeen(approval, action_hash);
    const seen = { actionHash: approval.actionHash, via: 'api' as const };
    const decision = approved ? { decision: 'approve' as const } : { decision: 'reject' as const, reason: notes ?? '' };
    const decided = await orStale(ports.runs, wanted, () =>
      decideAs(ports, caller, approval.approvalId, { ...decision, ...seen }),
    );
    const missing = 'missing' in decided ? decided.missing : null;
    const { outcome } = decided;
    const shown = { outcome, approvals_missing: missing, approval: approvalTask(decided.approval) };
    return { status: 200, body: { session_id: params.id, step_number, ...shown } };
  },
});

/** Says of each open approval whether enough people can approve it. */
async function withWarnings(ports: ApprovalsPorts, tenant: string, approvals: Approval[]) {
  if (!approvals.some(isOpen)) return approvals;
  const people = await ports.definitions.people(tenant);
  const at = isoNow(ports.clock);
  return approvals.map((approval) => withWarning(approval, people, at));
}

function withWarning(approval: Approval, people: readonly Person[], at: string) {
  const missing = isOpen(approval) ? missingApprovers(approval, people, at) : undefined;
  return missing ? { ...approval, warning: sentenceText(missing) } : approval;
}

function decideAs(ports: ApprovalsPorts, { tenant, person, role }: Caller, approvalId: string, body: DecisionBody) {
  const { actionHash, via } = body;
  return decide(ports, { tenant, approvalId, person, role, decision: decisionOf(body), actionHash, via });
}

function decisionOf(body: DecisionBody): Decision {
  switch (body.decision) {
    case 'approve':
      return { kind: 'approve' };
    case 'reject':
      return { kind: 'reject', reason: body.reason };
    case 'edit':
      return { kind: 'edit', fields: body.fields };
  }
}

async function onlyOpenApproval({ runs }: ApprovalsPorts, { tenant }: Caller, runId: string): Promise<string> {
  const loaded = await runs.load(tenant, runId);
  if (!loaded) throw new Problem(404, 'NOT_FOUND', `there is no run ${runId}`);
  const waiting = loaded.steps.flatMap((step) => (step.status === 'waiting_approval' ? [step.approvalId] : []));
  const open = [...new Set(waiting)];
  const [only, ...others] = open;
  if (only === undefined) throw new Problem(409, 'APPROVAL_CLOSED', 'this run has no open approval');
  if (others.length > 0) {
    throw new Problem(
      409,
      'AMBIGUOUS',
      `this run has several open approvals; decide one of ${open.join(', ')} by its ID`,
    );
  }
  return only;
}
