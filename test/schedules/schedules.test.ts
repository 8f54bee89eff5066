import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Automation } from '../../lambdas/pipeline/definitions.ts';
import { SLOTS_STARTED_MAX } from '../../lambdas/schedules/fire-schedule.ts';
import { dueSlots, nextSlots, Schedule, scheduleProblem } from '../../lambdas/schedules/schedule.ts';
import { askAbout } from '../api/definitions/ask-definitions.ts';
import { die, ISSUE, Workshop } from '../worker/workshop.ts';

const NOW = '2026-03-02T10:00:30.000Z';
const schedule = (differing: Partial<Schedule>): Schedule =>
  Schedule.parse({ name: 'nightly', automation: 'label-now', ...differing });

describe('the slots of a schedule', () => {
  it.each([
    ['before the clocks go forward', '2026-03-28T12:00:00Z', ['2026-03-29T01:00:00.000Z', '2026-03-30T00:30:00.000Z']],
    ['before the clocks go back', '2026-10-24T12:00:00Z', ['2026-10-25T00:30:00.000Z', '2026-10-26T01:30:00.000Z']],
  ])('a time of the day happens once a day, %s', (_case, after, expected) => {
    const daily = schedule({ cron: '30 2 * * *', timeZone: 'Europe/Berlin' });
    expect(nextSlots(daily, after, 2)).toEqual(expected);
  });

  it('a time of every hour happens every hour when the clocks change', () => {
    const hourly = schedule({ cron: '30 * * * *', timeZone: 'Europe/Berlin' });
    for (const after of ['2026-03-28T22:45:00Z', '2026-10-24T22:45:00Z']) {
      const slots = nextSlots(hourly, after, 5).map((slot) => Date.parse(slot));
      expect(slots.slice(1).map((slot, index) => slot - (slots[index] ?? 0))).toEqual(Array(4).fill(3_600_000));
    }
  });

  it('a rate has the same slots, whenever it is asked', () => {
    const often = schedule({ rate: '15 minutes' });
    expect(nextSlots(often, '2026-03-02T10:00:00.000Z', 2)).toEqual([
      '2026-03-02T10:15:00.000Z',
      '2026-03-02T10:30:00.000Z',
    ]);
    expect(nextSlots(often, '2026-03-02T10:14:59.000Z', 1)).toEqual(['2026-03-02T10:15:00.000Z']);
  });

  const minute = (minutes: number) => new Date(Date.parse('2026-03-02T10:00:00Z') + minutes * 60_000).toISOString();

  it.each([
    [{ catchUp: 'skip' }, []],
    [{ catchUp: 'one' }, [minute(120)]],
    [{ catchUp: 'all', catchUpMax: 2 }, [minute(60), minute(120)]],
    [{ catchUp: 'all', catchUpMax: 10 }, [minute(0), minute(60), minute(120)]],
  ] as const)('after an outage, %j starts these', (differing, expected) => {
    const hourly = schedule({ cron: '0 * * * *', ...differing });
    const due = dueSlots(hourly, minute(0), minute(170));
    expect(due).toMatchObject({ start: expected, next: minute(180) });
    expect([...due.start, ...due.missed].sort()).toEqual([minute(0), minute(60), minute(120)]);
  });

  it('a slot that is a little late starts its run with any catch-up, and a very old one with none', () => {
    const hourly = (catchUp: Schedule['catchUp']) => schedule({ cron: '0 * * * *', catchUp, catchUpMax: 100 });
    for (const catchUp of ['skip', 'one', 'all'] as const) {
      expect(dueSlots(hourly(catchUp), minute(0), minute(4)).start).toEqual([minute(0)]);
    }
    const weekly = schedule({ cron: '0 10 * * 1', catchUp: 'all' });
    expect(dueSlots(weekly, minute(0), minute(60 * 24 * 7 + 1000)).start).toEqual([minute(60 * 24 * 7)]);
  });

  it.each([
    [{}, 'give either `cron` or `rate`'],
    [{ cron: '0 9 * * *', rate: '1 hour' }, 'give either `cron` or `rate`'],
    [{ cron: '61 * * * *' }, 'Invalid value for minute'],
    [{ cron: '0 0 9 * * *' }, 'is not valid'],
    [{ cron: '0 0 31 2 *' }, 'never happens'],
    [{ cron: '0 9 * * *', timeZone: 'Europe/Belrin' }, 'did you mean "Europe/Berlin"?'],
    [{ rate: '90 seconds' }, 'write for example "15 minutes"'],
    [{ rate: '1 hour', timeZone: 'Europe/Berlin' }, 'a rate has no time zone'],
  ])('%j is refused', (differing, text) => {
    expect(scheduleProblem(schedule(differing), NOW)).toContain(text);
  });
});

const LABEL = `
name: label
inputs: { label: { type: string, required: true } }
steps:
  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: ["{% inputs.label %}"] } }
`;
const automation: Automation = {
  name: 'label-now',
  enabled: true,
  workspace: 'default',
  trigger: { source: 'manual' },
  workflow: { name: 'label', version: 1 },
};
const HOURLY = { automation: 'label-now', cron: '0 * * * *', inputs: { label: 'nightly' }, catchUp: 'all' };
const HOUR_MS = 3_600_000;

let shop: Workshop;
beforeEach(async () => {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
  await shop.begin(LABEL, { inputs: { label: 'unused' } });
  await shop.definitions.saveAutomation('acme', automation);
});
afterEach(() => vi.unstubAllGlobals());

const ask = (routeKey: string, body?: unknown, differing = {}) =>
  askAbout(shop.definitions, routeKey, {
    id: 'hourly',
    body,
    clock: shop.clock,
    schedules: shop.runs.schedules,
    ...differing,
  });
const save = (differing = {}) => ask('PUT /api/v1/schedules/{name}', { ...HOURLY, ...differing });
const show = async () => (await ask('GET /api/v1/schedules/{name}')).body;
const scheduled = () =>
  [...shop.runs.inside.runs()].filter(({ trigger }) => trigger.source === 'schedule').map((run) => run.request?.slot);

describe('a schedule', () => {
  it('starts one run per slot with its inputs, and the person who saved it is a maker', async () => {
    expect((await save()).body).toMatchObject({
      nextRuns: [
        '2026-01-02T04:00:00.000Z',
        '2026-01-02T05:00:00.000Z',
        '2026-01-02T06:00:00.000Z',
        '2026-01-02T07:00:00.000Z',
        '2026-01-02T08:00:00.000Z',
      ],
      lastRun: null,
    });
    shop.clock.advance(HOUR_MS);
    await Promise.all([shop.sweep(), shop.sweep()]);
    await shop.sweep();
    expect(scheduled()).toEqual(['2026-01-02T04:00:00.000Z']);
    const { lastRun, nextRuns } = await show();
    expect(nextRuns[0]).toBe('2026-01-02T05:00:00.000Z');
    const { run, steps } = await shop.finish({ tenant: 'acme', runId: lastRun.runId });
    expect(run).toMatchObject({ status: 'succeeded', automation: 'label-now', request: { actor: 'schedule:hourly' } });
    expect(steps[0]?.governed?.request.action.makers).toContain('olivia');
    expect(shop.outside.issueLabels.get(ISSUE)).toContain('nightly');
  });

  it('starts one run per slot if the sweeper dies at any of its calls', async () => {
    await save();
    for (let slot = 0; slot < 6; slot += 1) {
      shop.clock.advance(HOUR_MS);
      for (let dieAt = 1; dieAt <= 12; dieAt += 1) {
        let calls = 0;
        // It crashes before or after the effect of the call.
        shop.disturb(async (_name, run) => {
          calls += 1;
          if (calls < dieAt) return run();
          if (dieAt % 2 === 0) await run();
          return die();
        });
        await shop.sweep();
      }
      shop.disturb((_name, run) => run());
      await shop.sweep();
    }
    expect(scheduled()).toHaveLength(6);
    expect(new Set(scheduled()).size).toBe(6);
  });

  it('starts the missed slots after an outage as `catchUp` says, once', async () => {
    await save({ catchUpMax: 3 });
    shop.clock.advance(10 * HOUR_MS);
    await shop.sweep();
    await shop.sweep();
    // Three that were missed, and the one that is on time.
    expect(scheduled()).toEqual([10, 11, 12, 13].map((hour) => `2026-01-02T${hour}:00:00.000Z`));
    expect(await show()).toMatchObject({ missed: { slots: 6, lastSlot: '2026-01-02T09:00:00.000Z' } });
  });

  it('many missed slots are started by several sweeps, each once and in order', async () => {
    await save({ catchUpMax: 100 });
    shop.clock.advance(50 * HOUR_MS);
    await shop.sweep();
    expect(scheduled()).toHaveLength(SLOTS_STARTED_MAX);
    for (let sweeps = 0; sweeps < 4; sweeps += 1) {
      shop.clock.advance(60_000);
      await shop.sweep();
    }
    expect(scheduled()).toHaveLength(50);
    expect(scheduled()).toEqual([...new Set(scheduled())].sort());
    expect(await show()).toMatchObject({ missed: null });
  });

  it('shows why a slot started no run, and goes on with the next slot', async () => {
    await save();
    await shop.definitions.saveAutomation('acme', { ...automation, enabled: false });
    shop.clock.advance(HOUR_MS);
    await shop.sweep();
    expect(scheduled()).toEqual([]);
    const lastError = {
      slot: '2026-01-02T04:00:00.000Z',
      code: 'CONFLICT',
      message: expect.stringContaining('disabled'),
    };
    expect(await show()).toMatchObject({ lastError });
    await shop.definitions.saveAutomation('acme', automation);
    shop.clock.advance(HOUR_MS);
    await shop.sweep();
    expect(scheduled()).toEqual(['2026-01-02T05:00:00.000Z']);
    expect(await show()).toMatchObject({ lastError: null });
  });

  it('starts nothing while it is disabled or after it is deleted, and each change is in the history', async () => {
    await save();
    expect((await ask('POST /api/v1/schedules/{name}/disable')).body).toMatchObject({ enabled: false, nextRuns: [] });
    shop.clock.advance(3 * HOUR_MS);
    await shop.sweep();
    expect(scheduled()).toEqual([]);
    const enabled = await ask('POST /api/v1/schedules/{name}/enable', undefined, {
      as: { person: 'oscar', role: 'operator' },
    });
    expect(enabled.body).toMatchObject({ enabled: true, makers: ['olivia', 'oscar'] });
    await shop.sweep();
    expect(scheduled()).toEqual([]);
    shop.clock.advance(HOUR_MS);
    await shop.sweep();
    expect(scheduled()).toEqual(['2026-01-02T07:00:00.000Z']);
    await ask('DELETE /api/v1/schedules/{name}');
    shop.clock.advance(HOUR_MS);
    await shop.sweep();
    expect(scheduled()).toHaveLength(1);
    expect(shop.runs.schedules.changes.map(({ actor, after }) => [actor, after === null])).toEqual([
      ['olivia', false],
      ['olivia', false],
      ['oscar', false],
      ['olivia', true],
    ]);
  });

  it('a slot that is due stays due when only the inputs change, and starts no second run when it is saved again', async () => {
    await save();
    shop.clock.advance(HOUR_MS);
    await save({ inputs: { label: 'other' } });
    await shop.sweep();
    await ask('DELETE /api/v1/schedules/{name}');
    await save();
    await shop.sweep();
    expect(scheduled()).toEqual(['2026-01-02T04:00:00.000Z']);
  });

  it.each([
    [{ automation: 'label-nwo' }, 'did you mean "label-now"'],
    [{ inputs: {} }, 'inputs.label'],
    [{ cron: '0 25 * * *' }, 'cron: "0 25 * * *" is not valid'],
  ])('%j is refused when it is saved', async (differing, text) => {
    await expect(save(differing)).rejects.toMatchObject({
      status: 422,
      code: 'SCHEDULE_INVALID',
      message: expect.stringContaining(text),
    });
    await expect(ask('GET /api/v1/schedules/{name}')).rejects.toMatchObject({
      status: 404,
      message: expect.stringMatching(/; countersign schedules list shows all$/),
    });
  });
});
