import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { accepted } from '../../fakes/story.ts';
import { survived, Workshop } from '../workshop.ts';

let shop: Workshop;
beforeEach(() => {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const WAITS = 'name: waits\nsteps:\n  - { id: hook, tool: wait.external, with: { event: go } }\n';
type Message = { tenant: string; runId: string };
const eventsOf = async (message: Message) =>
  (await shop.now(message)).commits.map(({ events }) => events.map(({ type }) => type));

describe('6.2 enrichment', () => {
  it('calls no other system and no model, and has the same result for the same trigger', async () => {
    const first = await shop.begin(WAITS);
    const second = await shop.begin(WAITS.replace('name: waits', 'name: waits-too'));
    for (const message of [first, second]) await shop.work(message);
    const [one, other] = [await shop.now(first), await shop.now(second)];
    expect(one.run.enrichment).toMatchObject({ title: 'Checkout fails' });
    expect(other.run.enrichment).toEqual(one.run.enrichment);
    expect(shop.outside.calls).toEqual([]);
  });

  it('is one commit with the changes of status and the start of the first step: nobody finds a part of it', async () => {
    const message = await shop.begin(WAITS);
    await shop.work(message);
    const commits = await eventsOf(message);
    const enriched = commits.find((types) => types.includes('run.enriched')) ?? [];
    expect(enriched.filter((type) => type === 'run.status_changed').length).toBeGreaterThan(1);
    expect(commits.filter((types) => types.includes('run.enriched'))).toHaveLength(1);
  });

  it('survives a worker that dies at any call: either nothing is enriched, or everything is, once', async () => {
    for (let point = 1; point <= 12; point += 1) {
      shop = new Workshop();
      const message = await shop.begin(WAITS);
      let calls = 0;
      shop.disturb((_name, run) => {
        calls += 1;
        if (calls === point) throw new Error('the worker dies');
        return run();
      });
      await survived(() => shop.work(message));
      const { run } = await shop.now(message);
      const isEnriched = (await eventsOf(message)).some((types) => types.includes('run.enriched'));
      expect([point, run.enrichment !== undefined]).toEqual([point, isEnriched]);
      if (!isEnriched) expect(run.status).toBe('queued');
      shop.disturb((_name, run) => run());
      shop.clock.advance(120_000);
      await shop.work(message);
      expect((await eventsOf(message)).flat().filter((type) => type === 'run.enriched')).toHaveLength(1);
      expect((await shop.now(message)).run.status).toBe('waiting_external');
    }
  });

  it('without a title ends the run with stage and reason, and nothing is written', async () => {
    const { trigger } = accepted();
    const message = await shop.begin(WAITS, { trigger: { ...trigger, fields: {} } });
    const { run, steps } = await shop.finish(message);
    const error = { code: 'ENRICHMENT_FAILED', message: expect.stringContaining('title') };
    expect(run).toMatchObject({ status: 'failed_terminal', error });
    expect(run.enrichment).toBeUndefined();
    expect(steps).toEqual([]);
    expect(shop.outside.calls).toEqual([]);
  });
});
