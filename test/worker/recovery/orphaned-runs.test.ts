import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { HOOKS_URL, sendHttpThroughFetch } from '../../fakes/targets/http-through-fetch.ts';
import { ASSIGN, FAILED, GovernedWorkshop } from '../governance/governed-workshop.ts';
import { die, eventTypes, SYS_ID } from '../workshop.ts';

/** Source 002, 5.3 and 5.4: a run that its worker has lost is resumed from its last commit. */

const MINUTE_MS = 60_000;

let shop: GovernedWorkshop;
let sendHttpAsBefore: () => void;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
  sendHttpAsBefore = sendHttpThroughFetch();
  shop.policy.decision = () => ALLOWED;
});
afterEach(() => {
  sendHttpAsBefore();
  vi.unstubAllGlobals();
});

const NOTE = `
name: note
steps:
  - { id: note, tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: seen } }
`;
const HOOK = `
name: hook
steps:
  - { id: hook, tool: http.request, with: { method: POST, url: "${HOOKS_URL}/deploy", body: { version: 7 } } }
`;
const GET = (deadlineSeconds: number) => `
name: get
deadlineSeconds: ${deadlineSeconds}
steps:
  - { id: look, tool: servicenow.incident.get, with: { sysId: "${SYS_ID}", fields: [state] } }
`;
const notes = () => shop.outside.incidents.get(SYS_ID)?.workNotes ?? [];
const resumed = (now: Awaited<ReturnType<typeof shop.now>>) =>
  now.commits.flatMap(({ events }) => events.filter(({ type }) => type === 'run.resumed'));

/** A worker is killed by this call, before it is made or after its effect. */
async function killedAt(message: StepMessage, call: string, when: 'before' | 'after'): Promise<void> {
  const killed = Promise.withResolvers<void>();
  shop.disturb(async (name, run) => {
    if (name !== call) return run();
    if (when === 'after') await run();
    killed.resolve();
    return die();
  });
  void shop.work(message);
  await killed.promise;
  shop.disturb((_name, run) => run());
}

describe('after 31 minutes without a commit', () => {
  it('an approved write that was not sent yet is sent', async () => {
    await shop.open();
    const { message, approval } = await shop.upToGate(ASSIGN());
    await shop.say(approval, 'ben');
    shop.queue.receive();
    shop.clock.advance(31 * MINUTE_MS);
    await shop.work(message);
    const now = await shop.now(message);
    expect(now.run).toMatchObject({ status: 'succeeded', resumeCount: 1 });
    expect(resumed(now)).toMatchObject([{ because: 'orphaned', silentSince: expect.any(String), resumeCount: 1 }]);
    expect(shop.writes()).toHaveLength(1);
    expect(shop.log.lines).toContainEqual(
      expect.objectContaining({ details: expect.objectContaining({ code: 'RUN_ORPHANED', runId: message.runId }) }),
    );
  });

  it.each(['before', 'after'] as const)('a natural write is repeated (killed %s sending)', async (when) => {
    const message = await shop.begin(ASSIGN());
    await killedAt(message, 'PATCH servicenow', when);
    shop.clock.advance(31 * MINUTE_MS);
    const now = await shop.finish(message);
    expect(now.run).toMatchObject({ status: 'succeeded', resumeCount: 1 });
    expect(shop.outside.incidents.get(SYS_ID)?.fields.category).toBe('network');
  });

  it.each(['before', 'after'] as const)('a marked write is probed, and made once (killed %s)', async (when) => {
    const message = await shop.begin(NOTE);
    await killedAt(message, 'PATCH servicenow', when);
    shop.clock.advance(31 * MINUTE_MS);
    const now = await shop.finish(message);
    expect(now.run).toMatchObject({ status: 'succeeded' });
    expect(notes()).toHaveLength(1);
    expect(now.receipts[0]).toMatchObject({ outcome: 'succeeded', ...(when === 'after' && { recovered: true }) });
  });
});

describe('a worker that died while it sent an opaque write', () => {
  it.each([
    [61, 'seconds', 61_000],
    [31, 'minutes', 31 * MINUTE_MS],
  ])('needs a human after %d %s: it is unknown whether it was made, so it is not sent again', async (_n, _unit, ms) => {
    const message = await shop.begin(HOOK);
    await killedAt(message, 'POST 127.0.0.1', 'after');
    shop.clock.advance(ms);
    const now = await shop.finish(message);
    expect(now.run).toMatchObject({ status: 'needs_human', error: { code: 'OUTCOME_UNKNOWN' } });
    expect(now.receipts).toMatchObject([{ effect: 'opaque', outcome: 'unknown' }]);
    expect(shop.outside.callsOf('POST 127.0.0.1')).toHaveLength(1);
  });
});

describe('a worker that died while it read', () => {
  it('leaves no open receipt, if policy then refuses that another one reads', async () => {
    const message = await shop.begin(GET(24 * 3600));
    await killedAt(message, 'GET servicenow', 'before');
    const [open] = (await shop.now(message)).receipts;
    expect(open).toMatchObject({ effect: 'read', outcome: 'intent' });
    shop.policy.decision = () => FAILED;
    shop.clock.advance(61_000);
    const now = await shop.finish(message);
    expect(now.run).toMatchObject({ status: 'failed_terminal', error: { code: 'POLICY_ERROR' } });
    const [settled] = await shop.runs.receipts(message.tenant, [open?.key ?? '']);
    expect(settled).toMatchObject({ effect: 'read', outcome: 'failed', error: { code: 'LEASE_LOST' } });
  });
});

describe('a run is orphaned', () => {
  it('after 30 minutes without a commit and not before', async () => {
    const message = await shop.begin(GET(24 * 3600));
    await killedAt(message, 'GET servicenow', 'before');
    shop.clock.advance(30 * MINUTE_MS - 1);
    await killedAt(message, 'GET servicenow', 'before');
    expect(resumed(await shop.now(message))).toMatchObject([{ because: 'lease_expired' }]);
    shop.clock.advance(30 * MINUTE_MS);
    await killedAt(message, 'GET servicenow', 'before');
    expect(resumed(await shop.now(message)).at(-1)).toMatchObject({ because: 'orphaned', resumeCount: 2 });
  });

  it('and ends as RUN_ORPHANED after three resumes without effect', async () => {
    const message = await shop.begin(GET(24 * 3600));
    for (let silence = 0; silence <= 3; silence += 1) {
      await killedAt(message, 'GET servicenow', 'before');
      shop.clock.advance(30 * MINUTE_MS);
    }
    await shop.work(message);
    const now = await shop.now(message);
    expect(now.run).toMatchObject({ status: 'failed_terminal', error: { code: 'RUN_ORPHANED' }, resumeCount: 3 });
    expect(eventTypes(now).filter((type) => type === 'run.resumed')).toHaveLength(3);
  });

  it('never while it waits for an approval', async () => {
    await shop.open();
    const { message } = await shop.upToGate(ASSIGN());
    shop.clock.advance(5 * 60 * MINUTE_MS);
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('waiting_approval');
  });
});
