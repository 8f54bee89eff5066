import fc from 'fast-check';
import { afterEach, expect, it, vi } from 'vitest';
import type { StepMessage } from '../../lambdas/worker/step-queue.ts';
import { NOTE, TRIAGE } from './workflows.ts';
import { ISSUE, SYS_ID, Workshop } from './workshop.ts';

const SEED = 20_260_102;

afterEach(() => vi.unstubAllGlobals());

function open(): Workshop {
  const shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
  return shop;
}

/** Every call of every worker waits for its turn, and the schedule decides whose turn it is. */
async function atOnce(shop: Workshop, schedule: fc.Scheduler, ...messages: StepMessage[]): Promise<void> {
  shop.disturb(async (name, run) => {
    await schedule.schedule(Promise.resolve(), name);
    return run();
  });
  await schedule.waitFor(Promise.all(messages.map((message) => shop.work(message))));
  shop.disturb((_name, run) => run());
}

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
