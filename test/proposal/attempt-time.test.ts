import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Access } from '../../lambdas/connectors/connector.ts';
import { TokenCache } from '../../lambdas/connectors/token-cache.ts';
import { ALLOWED } from '../fakes/fake-policy.ts';
import { GovernedWorkshop } from '../worker/governance/governed-workshop.ts';
import { SYS_ID } from '../worker/workshop.ts';

/** One attempt has one deadline: tokens, probes, reads and pages take from the same time as the write. */

const FUNCTION_MS = 30_000;

let shop: GovernedWorkshop;
/** How long a request takes, by its name and path, on the workshop's clock. */
let takesMs: (name: string, path: string) => number;
/** GitHub always has one more page of somebody else's comments. */
let endlessPages: boolean;
const PAGE = Array.from({ length: 100 }, (_, id) => ({ id, body: 'x', html_url: 'http://github/x', created_at: '' }));
let timeouts: number[];
let startedAt: number;

async function open(connections?: (access: Record<string, Access>) => Record<string, Access>) {
  shop = await new GovernedWorkshop({ timeLeftMs: () => startedAt + FUNCTION_MS - shop.clock.now() }).open();
  shop.policy.decision = () => ALLOWED;
  if (connections) {
    const all = connections(shop.outside.access());
    Object.assign(shop.worker, { connections: { open: async (_tenant: string, name: string) => all[name] } });
  }
  vi.stubGlobal('fetch', async (input: string, init: RequestInit = {}) => {
    const url = new URL(input);
    if (url.pathname === '/oauth_token.do') {
      shop.clock.advance(takesMs('token', url.pathname));
      return Response.json({ access_token: 'granted', expires_in: 1800 });
    }
    const name = `${init.method ?? 'GET'} ${url.hostname}`;
    shop.clock.advance(takesMs(name, url.pathname + url.search));
    if (endlessPages && name === 'GET github') {
      const next = new URL(url);
      next.searchParams.set('page', String(Number(url.searchParams.get('page') ?? 1) + 1));
      return Response.json(PAGE, { headers: { link: `<${next.href}>; rel="next"` } });
    }
    return shop.outside.fetch(input, init);
  });
}

beforeEach(async () => {
  takesMs = () => 0;
  timeouts = [];
  endlessPages = false;
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
    timeouts.push(ms);
    return timeout(2 ** 30);
  });
  await open();
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** One invocation of the worker, of whose time this much is already used. */
async function invoke(message: Parameters<typeof shop.work>[0], usedMs = 0) {
  startedAt = shop.clock.now() - usedMs;
  await shop.work(message);
  return shop.now(message);
}

const ASSIGN = `
name: assign
steps:
  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { category: network } } }
`;
const NOTE = `
name: note
steps:
  - { id: note, tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: seen } }
`;
const COMMENT = `
name: comment
steps:
  - { id: comment, tool: github.comment.create, with: { owner: octo-org, repo: payments, number: 7, body: seen } }
`;

describe('a write is not sent', () => {
  it('when the token and the read have used up the time, and is sent by the next invocation', async () => {
    await open((access) => ({
      ...access,
      servicenow: {
        ...(access.servicenow as Access),
        credential: { clientId: 'a', clientSecret: 'b' },
        token: new TokenCache(() => shop.clock.now()),
      },
    }));
    takesMs = (name) => (name === 'token' || name === 'GET servicenow' ? 9_500 : 0);
    const message = await shop.begin(ASSIGN);
    const now = await invoke(message, 6_000);
    expect(shop.writes()).toEqual([]);
    expect(now.steps).toMatchObject([{ status: 'failed_retryable', error: { code: 'TARGET_REFUSED' } }]);
    expect(now.receipts).toMatchObject([{ outcome: 'failed', neverSent: true }]);
    shop.clock.advance(60_000);
    const later = await invoke(message);
    expect(later.steps).toMatchObject([{ status: 'succeeded' }]);
    expect(shop.writes()).toHaveLength(1);
  });

  it('when a slow probe has used up the time; the outcome stays unknown until the next probe', async () => {
    const message = await shop.begin(NOTE);
    shop.outside.next('PATCH servicenow', 'lost_request');
    await invoke(message);
    shop.clock.advance(60_000);
    let looks = 0;
    takesMs = (name) => {
      if (name !== 'GET servicenow') return 0;
      looks += 1;
      return looks === 1 ? 18_000 : 0;
    };
    const now = await invoke(message, 6_000);
    expect(shop.outside.callsOf('PATCH servicenow')).toHaveLength(0);
    expect(now.receipts).toMatchObject([{ outcome: 'unknown' }]);
    takesMs = () => 0;
    shop.clock.advance(600_000);
    expect((await invoke(message)).run.status).toBe('succeeded');
    expect(shop.outside.incidents.get(SYS_ID)?.workNotes).toHaveLength(1);
  });

  it('when there are too many pages to read: the attempt ends within its invocation', async () => {
    const message = await shop.begin(COMMENT);
    shop.outside.next('POST github', 'lost_request');
    await invoke(message);
    shop.clock.advance(60_000);
    takesMs = (name) => (name === 'GET github' ? 6_000 : 0);
    endlessPages = true;
    const now = await invoke(message);
    expect(shop.clock.now() - startedAt).toBeLessThanOrEqual(FUNCTION_MS);
    expect(shop.outside.callsOf('POST github')).toEqual([]);
    expect(now.receipts).toMatchObject([{ outcome: 'unknown' }]);
  });
});

it('no request may take longer than the time left for its attempt', async () => {
  takesMs = (name) => (name === 'GET servicenow' ? 16_500 : 0);
  const message = await shop.begin(ASSIGN);
  expect((await invoke(message)).run.status).toBe('succeeded');
  // 30 s of the function less 3 s for the commit: the read has its usual 10 s, and so has the write, with 10.5 s left.
  expect(timeouts).toEqual([10_000, 10_000]);
  timeouts.length = 0;
  const message2 = await shop.begin(COMMENT);
  shop.outside.next('POST github', 'lost_request');
  await invoke(message2);
  shop.clock.advance(60_000);
  takesMs = (name) => (name === 'GET github' ? 9_000 : 0);
  endlessPages = true;
  await invoke(message2);
  // One write, then three pages: 27 s, 18 s and 9 s were left before them.
  expect(timeouts).toEqual([10_000, 10_000, 10_000, 9_000]);
});

describe('a worker that paused', () => {
  it('sends nothing after 30 s of its lease of 60 s, and leaves the step to the next worker', async () => {
    const message = await shop.begin(ASSIGN);
    // The sandbox was frozen during the read; when it thaws it has all the time of another invocation.
    takesMs = (name) => {
      if (name !== 'GET servicenow') return 0;
      startedAt += 30_001;
      return 30_001;
    };
    const now = await invoke(message);
    expect(shop.writes()).toEqual([]);
    expect(now.steps).toMatchObject([{ status: 'running', leaseVersion: 1 }]);
    expect(now.receipts).toMatchObject([{ outcome: 'intent' }]);
    expect(shop.log.lines.map(({ details }) => details.code)).toContain('LEASE_LOST');
    takesMs = () => 0;
    shop.clock.advance(30_000);
    expect((await invoke(message)).run).toMatchObject({ status: 'succeeded', resumeCount: 1 });
    expect(shop.writes()).toHaveLength(1);
  });

  it('may send up to the 30th second: its request arrives before the lease ends by any clock', async () => {
    const message = await shop.begin(ASSIGN);
    takesMs = (name) => {
      if (name !== 'GET servicenow') return 0;
      startedAt += 30_000;
      return 30_000;
    };
    expect((await invoke(message)).run.status).toBe('succeeded');
  });
});
