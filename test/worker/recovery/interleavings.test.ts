import fc from 'fast-check';
import { afterEach, expect, it, vi } from 'vitest';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { ASSIGN, GovernedWorkshop } from '../governance/governed-workshop.ts';
import { NOTE, TRIAGE } from '../workflows.ts';
import { ISSUE, SYS_ID, Workshop } from '../workshop.ts';

const SEED = 20_260_102;

afterEach(() => vi.unstubAllGlobals());

function open(): Workshop {
  const shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
  return shop;
}

/** Every call of all of them waits for its turn, and the schedule decides whose turn it is. */
async function allAtOnce<T>(shop: Workshop, schedule: fc.Scheduler, begin: () => Promise<T>[]): Promise<T[]> {
  shop.disturb(async (name, run) => {
    await schedule.schedule(Promise.resolve(), name);
    return run();
  });
  const ended = await schedule.waitFor(Promise.all(begin()));
  shop.disturb((_name, run) => run());
  return ended;
}

const atOnce = (shop: Workshop, schedule: fc.Scheduler, ...messages: StepMessage[]) =>
  allAtOnce(shop, schedule, () => messages.map((message) => shop.work(message)));

it('workers with the same message, in any order of their calls, make each write once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), async (schedule) => {
      const shop = open();
      const message = await shop.begin(TRIAGE);
      await atOnce(shop, schedule, message, message, message);
      const { run } = await shop.now(message);
      expect(run).toMatchObject({ status: 'succeeded', seq: 5 });
      expect(shop.outside.incidents.get(SYS_ID)?.workNotes).toHaveLength(1);
      expect(shop.outside.callsOf('PATCH servicenow')).toHaveLength(2);
      expect(shop.outside.issueLabels.get(ISSUE)).toEqual(['bug', 'triage']);
    }),
    { seed: SEED, numRuns: 100 },
  );
});

it('two runs that want the identical write, in any order of their calls, make it once and both succeed', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), async (schedule) => {
      const shop = open();
      const [first, second] = [await shop.begin(NOTE), await shop.begin(NOTE)];
      await atOnce(shop, schedule, first, second);
      for (const message of [first, second]) expect((await shop.finish(message)).run.status).toBe('succeeded');
      expect(shop.outside.incidents.get(SYS_ID)?.workNotes).toHaveLength(1);
    }),
    { seed: SEED, numRuns: 100 },
  );
});

it('an approval, the same approval elsewhere and a rejection at once, in any order of their calls: one decides, the others are refused', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), async (schedule) => {
      const shop = await new GovernedWorkshop().open();
      vi.stubGlobal('fetch', shop.outside.fetch);
      const { message, approval } = await shop.upToGate(ASSIGN());
      const no = { kind: 'reject', reason: 'not now' } as const;
      const outcomes = await allAtOnce(shop, schedule, () =>
        [
          shop.say(approval, 'ana'),
          shop.say(approval, 'ana', 'approve', { via: 'slack' }),
          shop.say(approval, 'ben', no),
        ].map((saying) =>
          saying.then(
            ({ outcome }) => outcome,
            ({ code }) => code,
          ),
        ),
      );
      const approved = outcomes.includes('approved');
      const expected = approved
        ? ['already', 'approved', 'APPROVAL_CLOSED']
        : ['APPROVAL_CLOSED', 'APPROVAL_CLOSED', 'rejected'];
      expect([...outcomes.slice(0, 2).sort(), outcomes[2]]).toEqual(expected);
      const { run } = await shop.finish(message);
      expect(run.status).toBe(approved ? 'succeeded' : 'failed_terminal');
      expect(shop.writes()).toHaveLength(approved ? 1 : 0);
    }),
    { seed: SEED, numRuns: 60 },
  );
});
