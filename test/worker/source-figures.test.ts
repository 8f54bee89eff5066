import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { acceptDelivery } from '../../lambdas/intake/accept-delivery.ts';
import type { Delivery } from '../../lambdas/intake/delivery.ts';
import { LEASE_DURATION_MS, LEASE_RENEWAL_MS, QUARANTINE_MS, WORKER_TIMEOUT_MS } from '../../lambdas/run/lease.ts';
import { attemptsOf } from '../../lambdas/run/retry-policy.ts';
import { INACTIVITY_MAX_MS, RUN_DEADLINE_MS } from '../../lambdas/run/run.ts';
import { automation, openIntake } from '../intake/intake-world.ts';
import { ASSIGN, GovernedWorkshop } from './governance/governed-workshop.ts';

/** The figures of the source documents, written out. Changing a constant requires changing the number of the document here. */

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const elapsedMs = (from: string, to: string) => Date.parse(to) - Date.parse(from);

describe('an approval', () => {
  it.each([
    ['prod', 10],
    ['staging', 30],
    ['dev', 30],
  ] as const)(
    'in %s is overdue after %d minutes, reminded at half of that, and expires after 24 hours (001 4.3)',
    async (environment, minutes) => {
      shop = await new GovernedWorkshop({ environment }).open();
      vi.stubGlobal('fetch', shop.outside.fetch);
      const { approval } = await shop.upToGate(ASSIGN());
      expect(elapsedMs(approval.requestedAt, approval.slaAt)).toBe(minutes * MINUTE_MS);
      expect(elapsedMs(approval.requestedAt, approval.remindAt)).toBe((minutes / 2) * MINUTE_MS);
      expect(elapsedMs(approval.requestedAt, approval.expiresAt)).toBe(24 * HOUR_MS);
    },
  );

  it('can be decided until the last millisecond of its 24 hours, and not after', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN());
    shop.clock.advance(24 * HOUR_MS - 1);
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('waiting_approval');
    shop.clock.advance(1);
    await expect(shop.say(approval, 'ben')).rejects.toMatchObject({ code: 'APPROVAL_CLOSED' });
    await shop.work(message);
    const { run, commits } = await shop.now(message);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'APPROVAL_EXPIRED' } });
    expect(commits.at(-1)?.events).toContainEqual(expect.objectContaining({ type: 'approval.expired' }));
    expect(shop.writes()).toEqual([]);
  });
});

describe('a run', () => {
  it('has two hours from when it was accepted (004)', async () => {
    const intake = openIntake();
    await intake.definitions.saveAutomation('acme', automation('label'));
    const delivery = {
      source: 'github',
      event: 'issues.opened',
      key: 'github:1',
      makers: [],
      fields: {},
      payload: {},
    } satisfies Delivery;
    const { runIds } = await acceptDelivery(intake, 'acme', delivery, 'a'.repeat(64));
    const run = (await intake.runs.load('acme', runIds[0] ?? ''))?.run;
    if (!run) throw new Error('no run was started');
    expect(elapsedMs(run.createdAt, run.deadlineAt)).toBe(2 * HOUR_MS);
    expect(RUN_DEADLINE_MS).toBe(7_200_000);
  });

  it('is orphaned after 30 minutes (004); see orphaned-runs.test.ts', () => {
    expect(INACTIVITY_MAX_MS).toBe(1_800_000);
  });
});

it('a lease lasts 60 seconds and is renewed every 20; a function has 30, and the quarantine of an unknown outcome is 50', () => {
  expect(LEASE_DURATION_MS).toBe(60_000);
  expect(LEASE_RENEWAL_MS).toBe(20_000);
  expect(WORKER_TIMEOUT_MS).toBe(30_000);
  expect(QUARANTINE_MS).toBe(50_000);
});

it('a destructive write is tried once, any other five times, unless the workflow says otherwise (001 7.2, 000 6.2)', () => {
  expect(attemptsOf({ destructive: true }, {})).toBe(1);
  expect(attemptsOf({}, {})).toBe(5);
  expect(attemptsOf({ destructive: true }, { retry: { attempts: 3 } })).toBe(3);
});
