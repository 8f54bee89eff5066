import * as z from 'zod';
import { runIdOf } from '../approval/approval.ts';
import { type Decider, type Decision, decide } from '../approval/decide.ts';
import { type HttpAnswer, type HttpEvent, json, Problem } from '../entry/http.ts';
import type { Caller } from './api-keys.ts';
import { callerOf } from './caller.ts';
import { openCursor, sealCursor } from './cursor.ts';
import { answering, parseBody, parseQuery } from './request.ts';
import { approvalView } from './run-views.ts';

const PAGE_MAX = 100;
const PAGE_DEFAULT = 25;
const REASON_MAX_CHARACTERS = 2000;

const ListQuery = z.strictObject({
  status: z.literal('pending').default('pending'),
  limit: z.coerce.number().int().min(1).max(PAGE_MAX).default(PAGE_DEFAULT),
  cursor: z.string().optional(),
});

/** What the caller saw, so that nobody approves what they have not seen. */
const Seen = { actionHash: z.string().optional() };
const Reason = z.string().trim().min(1, 'say why, so that others can act on it').max(REASON_MAX_CHARACTERS);
const DecisionBody = z.discriminatedUnion('decision', [
  z.strictObject({ decision: z.literal('approve'), ...Seen }),
  z.strictObject({ decision: z.literal('reject'), reason: Reason, ...Seen }),
  z.strictObject({ decision: z.literal('edit'), fields: z.record(z.string(), z.json()), ...Seen }),
]);
type DecisionBody = z.infer<typeof DecisionBody>;

export interface ApprovalsApi extends Decider {
  cursorSecret: () => Promise<string>;
}

/** What waits for people, and their word on it. */
export function answerApprovals(api: ApprovalsApi, event: HttpEvent): Promise<HttpAnswer> {
  const caller = callerOf(event);
  const id = event.pathParameters?.id ?? '';
  switch (event.routeKey) {
    case 'GET /api/v1/approvals':
      return list(api, caller, event);
    case 'GET /api/v1/approvals/{id}':
      return show(api, caller, id);
    case 'POST /api/v1/approvals/{id}/decision':
      return decideOn(api, caller, id, parseBody(DecisionBody, event));
    case 'POST /api/v1/runs/{id}/approve':
      return decideOnRun(api, caller, id, { decision: 'approve', ...parseBody(z.strictObject(Seen), event) });
    case 'POST /api/v1/runs/{id}/reject': {
      const { reason, ...seen } = parseBody(z.strictObject({ reason: Reason, ...Seen }), event);
      return decideOnRun(api, caller, id, { decision: 'reject', reason, ...seen });
    }
    default:
      throw new Problem(404, 'NOT_FOUND', `there is nothing at ${event.rawPath}`);
  }
}

async function list(api: ApprovalsApi, { tenant }: Caller, event: HttpEvent): Promise<HttpAnswer> {
  const { limit, cursor } = parseQuery(ListQuery, event);
  const secret = await api.cursorSecret();
  const listed = `${tenant}/approvals`;
  const page = await api.runs.pendingApprovals(tenant, {
    limit,
    ...(cursor !== undefined && { after: openCursor(cursor, listed, secret) }),
  });
  return json(200, {
    approvals: page.items.map(approvalView),
    nextCursor: page.next === undefined ? null : sealCursor(page.next, listed, secret),
  });
}

async function show(api: ApprovalsApi, { tenant }: Caller, approvalId: string): Promise<HttpAnswer> {
  const approval = await api.runs.approval(tenant, runIdOf(approvalId), approvalId);
  if (!approval) throw new Problem(404, 'NOT_FOUND', `there is no approval ${approvalId}`);
  return json(200, approvalView(approval));
}

async function decideOn(
  api: ApprovalsApi,
  { tenant, person }: Caller,
  approvalId: string,
  body: DecisionBody,
): Promise<HttpAnswer> {
  const { actionHash } = body;
  const decided = await answering(() =>
    decide(api, { tenant, approvalId, person, via: 'api', decision: decisionOf(body), actionHash }),
  );
  return json(200, { outcome: decided.outcome, approval: approvalView(decided.approval) });
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
async function decideOnRun(api: ApprovalsApi, caller: Caller, runId: string, body: DecisionBody): Promise<HttpAnswer> {
  const loaded = await api.runs.load(caller.tenant, runId);
  if (!loaded) throw new Problem(404, 'NOT_FOUND', `there is no run ${runId}`);
  const open = loaded.steps.flatMap((step) => (step.status === 'waiting_approval' ? [step.approvalId] : []));
  const [only, ...others] = open;
  if (only === undefined) throw new Problem(409, 'APPROVAL_CLOSED', 'nothing of this run waits for an approval now');
  if (others.length > 0) {
    throw new Problem(409, 'AMBIGUOUS', `several approvals wait; decide on one of ${open.join(', ')} by its id`);
  }
  return decideOn(api, caller, only, body);
}
