import { beforeEach, describe, expect, it } from 'vitest';
import { type ApprovalsPorts, handleApprovals } from '../../lambdas/api/approvals/approvals.ts';
import type { ForDecision } from '../../lambdas/api/contract/approvals.ts';
import type { HttpEvent } from '../../lambdas/entry/http.ts';
import type { Approval } from '../../lambdas/run/approval.ts';
import { later } from '../../lambdas/run/lease.ts';
import { ANA, BEN } from '../approval/people.ts';
import { ChangeDraft } from '../contracts/run-store/change-draft.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';
import { MemoryRunStore } from '../fakes/memory/memory-run-store.ts';
import { accepted, requestedApproval } from '../fakes/story.ts';

let store: MemoryRunStore;
let definitions: MemoryDefinitions;
let runs = 0;

beforeEach(async () => {
  store = new MemoryRunStore();
  definitions = new MemoryDefinitions();
  for (const person of [ANA, BEN]) await definitions.savePerson('acme', person);
});

/** Stores an approval of a run of its own. */
async function stored(facts: Partial<Approval>): Promise<string> {
  runs += 1;
  const ingest = accepted({ runId: `run_${String(runs).padStart(4, '0')}` });
  await store.ingest(ingest.ingest);
  const approval = { ...requestedApproval(ingest.run), ...facts };
  await store.commit(new ChangeDraft(ingest.run, ingest.run.createdAt).writeApproval(approval, 'new').seal());
  return approval.approvalId;
}

async function list(query: Record<string, string>, person = 'ana') {
  const event = {
    routeKey: 'GET /api/v1/approvals',
    rawPath: '/api/v1/approvals',
    queryStringParameters: query,
    headers: {},
    requestContext: { authorizer: { lambda: { tenant: 'acme', person, role: 'approver' } } },
  } as unknown as HttpEvent;
  const ports = { runs: store, definitions, clock: new FakeClock(), cursorSecret: async () => 'secret' };
  const response = await handleApprovals(ports as unknown as ApprovalsPorts, event);
  return JSON.parse(String(response.body)) as { approvals: Approval[]; nextCursor: string | null };
}
const ids = ({ approvals }: { approvals: Approval[] }) => approvals.map(({ approvalId }) => approvalId);

const at = (minute: number) => later('2026-01-02T00:00:00.000Z', minute * 60_000);
const vote = (person: string) => ({ person, via: 'api' as const, decision: 'approve' as const, at: at(0) });

describe('closed approvals', () => {
  it('stay listed by how they were closed, the last closed first', async () => {
    const approved = await stored({ status: 'approved', decidedAt: at(1) });
    const rejected = await stored({ status: 'rejected', decidedAt: at(2) });
    const expired = await stored({ status: 'expired', decidedAt: at(3) });
    const canceled = await stored({ status: 'canceled', decidedAt: at(4) });
    const pending = await stored({ status: 'notified' });
    expect(ids(await list({ status: 'decided' }))).toEqual([rejected, approved]);
    expect(ids(await list({ status: 'approved' }))).toEqual([approved]);
    expect(ids(await list({ status: 'rejected' }))).toEqual([rejected]);
    expect(ids(await list({ status: 'expired' }))).toEqual([expired]);
    expect(ids(await list({ status: 'canceled' }))).toEqual([canceled]);
    expect(ids(await list({}))).toEqual([pending]);
  });

  it('of one status come page by page, each once', async () => {
    const wanted: string[] = [];
    for (let minute = 0; minute < 12; minute += 1) {
      const status = minute % 3 === 0 ? ('rejected' as const) : ('approved' as const);
      const id = await stored({ status, decidedAt: at(minute) });
      if (status === 'rejected') wanted.unshift(id);
    }
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await list({ status: 'rejected', limit: '1', ...(cursor && { cursor }) });
      seen.push(...ids(page));
      cursor = page.nextCursor;
    }
    expect(seen).toEqual(wanted);
  });

  it('that are mine are those that I voted on', async () => {
    const own = await stored({ status: 'approved', decidedAt: at(1), votes: [vote('ana')] });
    await stored({ status: 'approved', decidedAt: at(2), votes: [vote('ben')] });
    expect(ids(await list({ status: 'decided', mine: 'true' }))).toEqual([own]);
  });
});

describe('pending approvals that are mine', () => {
  it('are those that I may decide and have not decided', async () => {
    const open = await stored({ status: 'notified' });
    await stored({ status: 'notified', makers: ['ana'] });
    await stored({ status: 'notified', votes: [vote('ana')] });
    expect(ids(await list({ mine: 'true' }))).toEqual([open]);
    expect(ids(await list({ mine: 'true' }, 'nobody'))).toEqual([]);
  });
});

it('an unknown status is refused', async () => {
  await expect(list({ status: 'decide' })).rejects.toMatchObject({ status: 400 });
});

describe('what a caller needs to decide', () => {
  async function get(id: string, person: string, role = 'approver') {
    const event = {
      routeKey: 'GET /api/v1/approvals/{id}',
      rawPath: `/api/v1/approvals/${id}`,
      pathParameters: { id },
      headers: {},
      requestContext: { authorizer: { lambda: { tenant: 'acme', person, role } } },
    } as unknown as HttpEvent;
    const ports = { runs: store, definitions, clock: new FakeClock(), cursorSecret: async () => 'secret' };
    const response = await handleApprovals(ports as unknown as ApprovalsPorts, event);
    return (JSON.parse(String(response.body)) as { forDecision: ForDecision }).forDecision;
  }

  it('says who may decide, and to a maker why they may not', async () => {
    const id = await stored({
      status: 'notified',
      makers: ['ana'],
      requirement: { tier: 'low', quorum: 1, groups: [] },
    });
    expect(await get(id, 'ben')).toMatchObject({
      you: { may: true },
      people: [
        { person: 'ben', name: BEN.name, may: true },
        { person: 'ana', name: ANA.name, may: false, why: 'had a hand in this write' },
      ],
      requirement: 'Needs one person who may approve tier low.',
    });
    const { you } = await get(id, 'ana');
    expect(you).toEqual({ may: false, why: 'you had a hand in this write, so someone else must decide on it' });
  });

  it('is decided by the role of the credential, not only by the person', async () => {
    const id = await stored({ status: 'notified', makers: [], requirement: { tier: 'low', quorum: 1, groups: [] } });
    const { you } = await get(id, 'ben', 'member');
    expect(you).toMatchObject({ may: false, why: expect.stringContaining('a key for the role member may not decide') });
  });

  it('shows each field before and after with display names, and which fields an edit may change', async () => {
    const action = {
      ...requestedApproval(accepted().run).action,
      tool: 'servicenow.incident.update',
    } as Approval['action'];
    const group = 'a'.repeat(32);
    const id = await stored({
      action: action && { ...action, fields: { assignment_group: group } },
      before: { assignment_group: '' },
      names: { assignment_group: { [group]: 'Network' } },
    });
    expect(await get(id, 'ben')).toMatchObject({
      does: 'Sets fields of an incident.',
      written: [{ name: 'assignment_group', from: '""', to: `Network (${group})` }],
      editable: [
        { field: 'assignment_group', type: 'text', reference: true, choices: [{ value: group, name: 'Network' }] },
      ],
    });
  });

  it('a closed approval says who decided it', async () => {
    const id = await stored({ status: 'approved', decidedAt: at(1), votes: [vote('ben')] });
    expect((await get(id, 'ben')).you).toMatchObject({
      may: false,
      voted: 'approve',
      why: expect.stringContaining('by ben'),
    });
  });
});
