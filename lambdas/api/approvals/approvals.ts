import * as z from 'zod';
import { type Decider, type Decision, decide } from '../../approval/decide.ts';
import { type HttpEvent, type HttpResponse, json, Problem } from '../../entry/http.ts';
import { runIdOf } from '../../run/approval.ts';
import type { Caller } from '../authorizer/api-keys.ts';
import { type Paged, PageQuery, readPage } from '../paging/paging.ts';
import { parseBody, parseQuery } from '../request.ts';
import { cutToFit } from '../response-size.ts';
import { byRoute, type Handlers } from '../router.ts';
import { approvalView } from '../runs/run-views.ts';

const REASON_MAX_CHARACTERS = 2000;

const ListQuery = PageQuery.extend({ status: z.literal('pending').default('pending') });

/** What the caller saw, so that nobody approves what they have not seen. */
const Seen = { actionHash: z.string('say which action you saw: the actionHash of the approval you were shown') };
const Reason = z.string().trim().min(1, 'say why, so that others can act on it').max(REASON_MAX_CHARACTERS);
const Rejection = z.strictObject({ reason: Reason, ...Seen });
const DecisionBody = z.discriminatedUnion('decision', [
  z.strictObject({ decision: z.literal('approve'), ...Seen }),
  Rejection.extend({ decision: z.literal('reject') }),
  z.strictObject({ decision: z.literal('edit'), fields: z.record(z.string(), z.json()), ...Seen }),
]);
type DecisionBody = z.infer<typeof DecisionBody>;

export type ApprovalsApi = Decider & Paged;

const HANDLERS: Handlers<ApprovalsApi, 'approvals'> = {
  'GET /api/v1/approvals': list,
  'GET /api/v1/approvals/{id}': show,
  'POST /api/v1/approvals/{id}/decision': (api, caller, event) =>
    decideOn(api, caller, idIn(event), parseBody(DecisionBody, event)),
  'POST /api/v1/runs/{id}/approve': (api, caller, event) =>
    decideOnRun(api, caller, idIn(event), { decision: 'approve', ...parseBody(z.strictObject(Seen), event) }),
  'POST /api/v1/runs/{id}/reject': (api, caller, event) =>
    decideOnRun(api, caller, idIn(event), { decision: 'reject', ...parseBody(Rejection, event) }),
};

/** What waits for people, and their word on it. */
export const handleApprovals = byRoute(HANDLERS);

const idIn = (event: HttpEvent): string => event.pathParameters?.id ?? '';

async function list(api: ApprovalsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpResponse> {
  const page = await readPage(api, `${tenant}/approvals`, parseQuery(ListQuery, event), (place) =>
    api.runs
      .pendingApprovals(tenant, place)
      .then((found) => cutToFit(found, ({ requestedAt, approvalId }) => `${requestedAt} ${approvalId}`)),
  );
  return json(200, { approvals: page.items.map(approvalView), nextCursor: page.nextCursor });
}

async function show(api: ApprovalsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpResponse> {
  const approvalId = idIn(event);
  const approval = await api.runs.approval(tenant, runIdOf(approvalId), approvalId);
  if (!approval) throw new Problem(404, 'NOT_FOUND', `there is no approval ${approvalId}`);
  return json(200, approvalView(approval));
}

async function decideOn(
  api: ApprovalsApi,
  { tenant, person, role }: Caller,
  approvalId: string,
  body: DecisionBody,
): Promise<HttpResponse> {
  const deciding = { tenant, approvalId, person, role, decision: decisionOf(body), actionHash: body.actionHash };
  const { approval, ...outcome } = await decide(api, { ...deciding, via: 'api' });
  return json(200, { ...outcome, approval: approvalView(approval) });
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

/** For people at a run rather than at a card: its one open approval. */
async function decideOnRun(
  api: ApprovalsApi,
  caller: Caller,
  runId: string,
  body: DecisionBody,
): Promise<HttpResponse> {
  const loaded = await api.runs.load(caller.tenant, runId);
  if (!loaded) throw new Problem(404, 'NOT_FOUND', `there is no run ${runId}`);
  const waiting = loaded.steps.flatMap((step) => (step.status === 'waiting_approval' ? [step.approvalId] : []));
  const open = [...new Set(waiting)];
  const [only, ...others] = open;
  if (only === undefined) throw new Problem(409, 'APPROVAL_CLOSED', 'nothing of this run waits for an approval now');
  if (others.length > 0) {
    throw new Problem(409, 'AMBIGUOUS', `several approvals wait; decide on one of ${open.join(', ')} by its id`);
  }
  return decideOn(api, caller, only, body);
}
