import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONTRACT } from '../../../lambdas/api/contract/index.ts';
import type { Routes } from '../../../lambdas/api/contract/route.ts';
import type { Commit } from '../../../lambdas/run/commit.ts';
import { assertChain } from '../../fakes/assert-chain.ts';
import { incident, issueOpened } from '../harness/deliveries.ts';
import { ACME_KEY, APPROVER_KEY, GLOBEX_KEY, type ListedRun, type ShownRun } from '../harness/host-client.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

const OPERATOR = 'local-operator-key';
const AUDITOR = 'local-auditor-key';
const MEMBER = 'local-member-key';
const ISSUES = [1, 2, 3, 4, 5];
let host: TestHost;
let acmeRuns: string[];
let triageRun: string;
let globexRun: string;

beforeAll(async () => {
  host = await startTestHost();
  triageRun = await host.fileIncident(incident('seen through the API'));
  acmeRuns = [triageRun];
  for (const issue of ISSUES) acmeRuns.push(await host.openIssue(issue));
  const { body } = await host.sendGithub(issueOpened(1), { tenant: 'globex', secret: 'local-globex-github-secret' });
  globexRun = body.runIds[0] ?? '';
  await host.approve(triageRun);
  await host.waitForRun(triageRun);
  await host.idle();
});
afterAll(() => host.stop());

describe('the API needs a key', () => {
  it.each(['/runs', '/runs/run_0', '/runs/run_0/events'])('for %s', async (path) => {
    const none = await host.request('GET', `/api/v1${path}`);
    expect(none.status).toBe(401);
    for (const key of ['no-such-key', 'local-owner-key ', "' OR 1=1"]) {
      const { status, text } = await host.request('GET', `/api/v1${path}`, { headers: { 'x-api-key': `${key}x` } });
      expect([key, status]).toEqual([key, 401]);
      expect(text).not.toContain('run_');
    }
  });

  it('but not for the health check', async () => {
    expect((await host.request('GET', '/healthz')).body).toEqual({ status: 'ok' });
  });
});

it('documents itself: the page, its files and the document need no key', async () => {
  const page = await host.request('GET', '/docs');
  expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  const loaded = [...page.text.matchAll(/(?:src|href)="((?:docs|openapi)[^"]*)"/g)].map(([, file = '']) => file);
  expect(loaded).toHaveLength(4);
  for (const file of loaded) {
    // As browsers do, it accepts compressed files.
    const response = await fetch(`${host.url}/${file}`);
    expect([file, response.status, response.headers.get('content-encoding')]).toEqual([file, 200, 'gzip']);
    expect((await response.text()).length).toBeGreaterThan(100);
  }
  const { body } = await host.request<{ paths: object }>('GET', '/openapi.json');
  expect(Object.keys(body.paths)).toContain('/api/v1/runs/{id}');
});

describe('a list of runs', () => {
  interface Page {
    runs: ListedRun[];
    nextCursor: string | null;
  }
  const list = (query: string, key?: string) => host.api<Page>(`/runs?${query}`, key);

  it('returns the runs of the tenant in pages, newest first, each once', async () => {
    const seen: ListedRun[] = [];
    const sizes: number[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body }: { body: Page } = await list(`limit=2${cursor && `&cursor=${cursor}`}`);
      seen.push(...body.runs);
      sizes.push(body.runs.length);
      cursor = body.nextCursor;
    }
    expect(seen.map(({ runId }) => runId)).toEqual(acmeRuns.toReversed());
    expect(Math.max(...sizes)).toBe(2);
    expect((await list('', GLOBEX_KEY)).body.runs.map(({ runId }) => runId)).toEqual([globexRun]);
  });

  it('can be filtered by status', async () => {
    const { body } = await list('status=succeeded&limit=100');
    expect(body.runs.map(({ runId }) => runId).sort()).toEqual(acmeRuns.toSorted());
    expect((await list('status=needs_human')).body).toEqual({ runs: [], nextCursor: null });
  });

  it('accepts only its own cursors', async () => {
    const cursor = (await list('limit=2')).body.nextCursor ?? '';
    const [position = '', mac = ''] = cursor.split('.');
    const elsewhere = Buffer.from(`2099-01-01T00:00:00.000Z ${globexRun}`).toString('base64url');
    const refused = {
      'made up': await list('cursor=abc'),
      'with another position': await list(`cursor=${elsewhere}.${mac}`),
      'with another signature': await list(`cursor=${position}.${mac.replace(/^./, (c) => (c === 'A' ? 'B' : 'A'))}`),
      "another tenant's": await list(`cursor=${cursor}`, GLOBEX_KEY),
      "another list's": await list(`status=succeeded&cursor=${cursor}`),
    };
    for (const [which, { status, body }] of Object.entries(refused)) {
      expect([which, status, body]).toEqual([which, 400, expect.objectContaining({ code: 'BAD_CURSOR' })]);
    }
    expect((await list(`cursor=${cursor}`)).status).toBe(200);
  });

  it.each(['limit=0', 'limit=101', 'limit=x', 'status=done', 'stauts=queued', 'cursor='])(
    'refuses the query %s with a problem that says why',
    async (query) => {
      const { status, headers, body } = await list(query);
      expect(status).toBe(400);
      expect(headers.get('content-type')).toBe('application/problem+json');
      expect(body).toMatchObject({
        type: expect.stringMatching(/^urn:countersign:/),
        status: 400,
        detail: expect.stringMatching(/./),
      });
    },
  );
});

describe('a run', () => {
  it('is shown with its steps, commits, receipts and evidence, and its chain verifies', async () => {
    const run = await host.run(triageRun);
    expect(run.steps.map(({ id, status }) => [id, status])).toEqual([
      ['route', 'succeeded'],
      ['assign', 'succeeded'],
      ['routed', 'succeeded'],
      ['note', 'succeeded'],
      ['post', 'succeeded'],
    ]);
    expect(run.receipts.map(({ stepId, outcome }) => [stepId, outcome])).toEqual([
      ['assign', 'succeeded'],
      ['note', 'succeeded'],
      ['post', 'succeeded'],
    ]);
    expect(run.evidence).toMatchObject({ sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
    assertChain({ tenant: 'acme', runId: triageRun, seq: run.head.seq, headHash: run.head.hash }, run.commits);
    expect(run.commits.flatMap(({ events }) => events.map(({ type }) => type))).toEqual(
      expect.arrayContaining(['run.accepted', 'run.status_changed', 'write.intended', 'write.settled']),
    );
  });

  it('shows nothing that could be used to act in its name', async () => {
    const { text } = await host.api(`/runs/${triageRun}`);
    for (const secret of ['local-servicenow-password', 'xoxb-local', 'local-github-token']) {
      expect(text).not.toContain(secret);
    }
  });

  it('returns its events from any commit', async () => {
    const whole = await host.run(triageRun);
    const { body } = await host.api<{ commits: Commit[]; next: number; more: boolean }>(
      `/runs/${triageRun}/events?since=1&limit=2`,
    );
    expect(body.commits).toEqual(whole.commits.slice(1, 3));
    expect([body.next, body.more]).toEqual([3, whole.head.seq > 3]);
  });

  it.each(['', '/events'])(
    'of another tenant has the same response as one that does not exist (%s)',
    async (suffix) => {
      const invented = `run_${'0'.repeat(32)}`;
      const others = await host.api(`/runs/${globexRun}${suffix}`);
      const nobodys = await host.api(`/runs/${invented}${suffix}`);
      expect([others.status, nobodys.status]).toEqual([404, 404]);
      expect(others.text.replaceAll(globexRun, 'ID')).toBe(nobodys.text.replaceAll(invented, 'ID'));
      expect((await host.api<ShownRun>(`/runs/${globexRun}${suffix}`, GLOBEX_KEY)).status).toBe(200);
    },
  );

  it.each(['run_x', 'RUN%23acme', '..%2Fruns', '%00'])('with the malformed id %s is not found', async (id) => {
    expect((await host.api(`/runs/${id}`)).status).toBe(404);
  });
});

/** A request of each function behind keys, about something of acme. It starts runs, so it comes last. `own`: the other tenant gets its own data. */
interface Sample {
  group: string;
  method: string;
  path: string;
  body?: unknown;
  allowed: [key: string, status: number];
  /** No route of `runs` is closed to a role. */
  forbidden?: string;
  other: 404 | 'own';
}

async function samples(): Promise<Sample[]> {
  const filed = incident('sampled for rights');
  const waiting = await host.fileIncident(filed);
  const { steps, approvals } = await host.waitForRun(waiting, ({ status }) => status === 'waiting_approval');
  const approvalId = steps.find((step) => step.approvalId)?.approvalId;
  const rejection = { decision: 'reject', reason: 'a sample', actionHash: approvals[0]?.actionHash };
  const preview = { action: 'cancel', filter: { status: 'paused' }, options: {} };
  const { body: job } = await host.command('/runs/bulk', preview, OPERATOR);
  const { body: history } = await host.api<{ changes: { changeId: string }[] }>('/changes', AUDITOR);
  const key = { name: 'sample', role: 'member', machine: true };
  expect((await host.command('/api-keys', key)).status).toBe(201);
  const noPolicies = { policies: { engine: 'cedar', files: {} } };
  const day = '2020-01-01';
  const plan = 'a'.repeat(64);
  return [
    { group: 'runs', method: 'GET', path: `/runs/${triageRun}`, allowed: [AUDITOR, 200], other: 404 },
    {
      group: 'bulk',
      method: 'GET',
      path: `/runs/bulk/${job.jobId}`,
      allowed: [OPERATOR, 200],
      forbidden: MEMBER,
      other: 404,
    },
    {
      group: 'start',
      method: 'POST',
      path: `/runs/${triageRun}/rerun`,
      body: {},
      allowed: [OPERATOR, 201],
      forbidden: AUDITOR,
      other: 404,
    },
    {
      group: 'approvals',
      method: 'POST',
      path: `/approvals/${approvalId}/decision`,
      body: rejection,
      allowed: [APPROVER_KEY, 200],
      forbidden: MEMBER,
      other: 404,
    },
    {
      group: 'control',
      method: 'POST',
      path: `/runs/${acmeRuns[1]}/assign`,
      body: {},
      allowed: [MEMBER, 200],
      other: 404,
    },
    {
      group: 'control',
      method: 'POST',
      path: '/outbox/redrive',
      body: { dryRun: true },
      allowed: [OPERATOR, 200],
      forbidden: APPROVER_KEY,
      other: 'own',
    },
    {
      group: 'definitions',
      method: 'GET',
      path: `/changes/${history.changes[0]?.changeId}`,
      allowed: [AUDITOR, 200],
      forbidden: MEMBER,
      other: 404,
    },
    { group: 'setup', method: 'GET', path: '/doctor', allowed: [OPERATOR, 200], forbidden: MEMBER, other: 'own' },
    {
      group: 'plan',
      method: 'POST',
      path: `/plans/${plan}/apply`,
      allowed: [OPERATOR, 404],
      forbidden: AUDITOR,
      other: 404,
    },
    {
      group: 'agents',
      method: 'GET',
      path: '/enrolment-tokens',
      allowed: [ACME_KEY, 200],
      forbidden: OPERATOR,
      other: 'own',
    },
    {
      group: 'policies',
      method: 'POST',
      path: '/policies/replay',
      body: noPolicies,
      allowed: [AUDITOR, 200],
      forbidden: MEMBER,
      other: 'own',
    },
    { group: 'evidence', method: 'GET', path: `/runs/${triageRun}/evidence`, allowed: [MEMBER, 200], other: 404 },
    {
      group: 'evidence',
      method: 'GET',
      path: `/changes/days/${day}/changes.json`,
      allowed: [AUDITOR, 404],
      forbidden: MEMBER,
      other: 404,
    },
    {
      group: 'deadLetters',
      method: 'GET',
      path: '/dead-letters',
      allowed: [OPERATOR, 200],
      forbidden: AUDITOR,
      other: 'own',
    },
    {
      group: 'access',
      method: 'DELETE',
      path: '/api-keys/sample',
      allowed: [ACME_KEY, 200],
      forbidden: MEMBER,
      other: 404,
    },
  ];
}

it('each function allows a role, forbids another one, hides what belongs to acme from globex, and needs a key', async () => {
  const all = await samples();
  const keyed = Object.entries<Routes>(CONTRACT).filter(([, routes]) =>
    Object.values(routes).some(({ right }) => right !== 'public' && right !== 'signed'),
  );
  // `/mcp` is not a path of the API: mcp.test.ts tries it with keys, tokens and other tenants.
  const groups = keyed.map(([group]) => group).filter((group) => group !== 'mcp');
  expect(new Set(all.map(({ group }) => group))).toEqual(new Set(groups));
  for (const { group, method, path, body, allowed, forbidden, other } of all) {
    const send = (key?: string) =>
      host.request<{ code?: string }>(method, `/api/v1${path}`, {
        headers: key === undefined ? {} : { 'x-api-key': key },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    const what = `${group}: ${method} ${path}`;
    const nobody = await send();
    expect([what, nobody.status, nobody.body.code]).toEqual([what, 401, 'UNAUTHORIZED']);
    if (forbidden !== undefined) {
      const refused = await send(forbidden);
      expect([what, refused.status, refused.body.code]).toEqual([what, 403, expect.stringMatching(/FORBIDDEN$/)]);
    }
    const foreign = await send(GLOBEX_KEY);
    expect([what, foreign.status]).toEqual([what, other === 'own' ? 200 : 404]);
    if (other === 'own') for (const run of acmeRuns) expect(foreign.text, what).not.toContain(run);
    const [key, status] = allowed;
    const permitted = await send(key);
    expect([what, permitted.status, permitted.text]).toEqual([what, status, expect.anything()]);
  }
});
