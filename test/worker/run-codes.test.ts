import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { acceptDelivery } from '../../lambdas/intake/accept-delivery.ts';
import type { Delivery } from '../../lambdas/intake/delivery.ts';
import type { RunStore } from '../../lambdas/run/run-store.ts';
import type { Step } from '../../lambdas/run/step.ts';
import { ALLOWED } from '../fakes/fake-policy.ts';
import { automation, openIntake } from '../intake/intake-world.ts';
import { ASSIGN, GovernedWorkshop } from './governance/governed-workshop.ts';
import { die, SYS_ID } from './workshop.ts';

/** The codes of source 002 (its appendix) and of the design's lifecycle, each where it is met. */

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const GET = `
name: get
steps:
  - { id: look, tool: servicenow.incident.get, with: { sysId: "${SYS_ID}", fields: [state] } }
`;

describe('APPROVAL_REQUIRED', () => {
  it.each(['retry', 'resume'] as const)(
    'answers %s of a run that waits for people, and names the approval',
    async (kind) => {
      const { message, approval } = await shop.upToGate(ASSIGN());
      const refusal = shop.command(message, { kind });
      await expect(refusal).rejects.toMatchObject({
        code: 'APPROVAL_REQUIRED',
        message: expect.stringContaining(approval.approvalId),
      });
      expect((await shop.now(message)).run.status).toBe('waiting_approval');
      expect(shop.writes()).toEqual([]);
    },
  );

  it('is not the error for a step without an open approval', async () => {
    const { message } = await shop.upToGate(ASSIGN());
    await expect(shop.command(message, { kind: 'retry', step: 'other' })).rejects.toMatchObject({
      code: 'RUN_INVALID_TRANSITION',
    });
  });
});

describe('RUN_RESUME_FAILED', () => {
  it('is the error for resuming a run that a failed step has paused', async () => {
    shop.policy.decision = () => ALLOWED;
    const message = await shop.begin(ASSIGN('onFailure: pause'));
    shop.outside.next('PATCH servicenow', { status: 422 });
    await shop.work(message);
    await expect(shop.command(message, { kind: 'resume' })).rejects.toMatchObject({
      code: 'RUN_RESUME_FAILED',
      message: expect.stringContaining('assign has failed (TARGET_REFUSED)'),
    });
  });

  it.each([
    ['its tool is gone', (step: Step) => ({ ...step, tool: 'servicenow.incident.gone' })],
    ['its tool takes another input', (step: Step) => ({ ...step, input: { sysId: 7 } })],
  ])('ends a run whose step was started by an older version, when %s', async (_why, deployed) => {
    shop.policy.decision = () => ALLOWED;
    const message = await shop.begin(GET);
    const killed = Promise.withResolvers<void>();
    shop.disturb((name, run) => {
      if (name !== 'GET servicenow') return run();
      killed.resolve();
      return die();
    });
    void shop.work(message);
    await killed.promise;
    shop.disturb((_name, run) => run());
    shop.clock.advance(60_000);
    // The row is as the new version finds it.
    const load: RunStore['load'] = async (...of) => {
      const loaded = await shop.runs.load(...of);
      return loaded && { ...loaded, steps: loaded.steps.map(deployed) as Step[] };
    };
    const runs = new Proxy(shop.runs, {
      get: (store, name) => {
        const member = name === 'load' ? load : Reflect.get(store, name);
        return typeof member === 'function' && name !== 'load' ? member.bind(store) : member;
      },
    });
    Object.assign(shop.worker, { runs });
    await shop.work(message);
    expect((await shop.now(message)).run).toMatchObject({
      status: 'failed_terminal',
      error: { code: 'RUN_RESUME_FAILED' },
      resumeCount: 1,
    });
  });
});

describe('IDEMPOTENCY_EXPIRED', () => {
  const DAY_MS = 86_400_000;
  const delivery = { source: 'github', event: 'issues.opened', key: 'github:1', makers: [], fields: {}, payload: {} };
  const accept = (intake: ReturnType<typeof openIntake>) =>
    acceptDelivery(intake, 'acme', delivery as Delivery, 'a'.repeat(64));
  const codes = ({ log }: ReturnType<typeof openIntake>) => log.lines.map(({ details }) => details.code);

  it('is logged when GitHub repeats a delivery after 8 days, and a new run starts', async () => {
    const intake = openIntake();
    await intake.definitions.saveAutomation('acme', automation('label'));
    const first = await accept(intake);
    intake.clock.advance(8 * DAY_MS - 1);
    expect(await accept(intake)).toMatchObject({ runIds: first.runIds, deduplicated: true });
    expect(codes(intake)).not.toContain('IDEMPOTENCY_EXPIRED');
    intake.clock.advance(1);
    const again = await accept(intake);
    expect(again.deduplicated).toBe(false);
    expect(again.runIds).not.toEqual(first.runIds);
    expect(intake.log.lines.at(-1)?.details).toMatchObject({ code: 'IDEMPOTENCY_EXPIRED', earlierRuns: first.runIds });
  });
});

it('LEASE_LOST is logged by a worker whose step was claimed by another one, and it writes nothing more', async () => {
  shop.policy.decision = () => ALLOWED;
  const message = await shop.begin(ASSIGN());
  let overtaken = false;
  shop.disturb(async (name, run) => {
    const result = await run();
    if (name === 'PATCH servicenow' && !overtaken) {
      overtaken = true;
      shop.clock.advance(60_000);
      await shop.work(message);
    }
    return result;
  });
  await shop.work(message);
  const now = await shop.now(message);
  expect(now.run.status).toBe('succeeded');
  expect(now.steps).toMatchObject([{ leaseVersion: 2 }]);
  expect(shop.log.lines.map(({ details }) => details.code)).toContain('LEASE_LOST');
});
