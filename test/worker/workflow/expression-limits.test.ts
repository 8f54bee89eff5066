import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { processBatch } from '../../../lambdas/entry/sqs-batch.ts';
import { acceptDelivery } from '../../../lambdas/intake/accept-delivery.ts';
import type { Delivery } from '../../../lambdas/intake/delivery.ts';
import type { Expressions } from '../../../lambdas/workflow/expressions/expressions.ts';
import { wireExpressions } from '../../../lambdas/workflow/expressions/expressions.wiring.ts';
import { MemoryLog } from '../../fakes/memory/memory-log.ts';
import { automation, openIntake } from '../../intake/intake-world.ts';
import { ENDLESS } from '../../workflow/attack-expressions.ts';
import { GovernedWorkshop } from '../governance/governed-workshop.ts';
import { SYS_ID } from '../workshop.ts';

const expressions = wireExpressions();
afterAll(() => expressions.stop());

/** An expression that never ends uses a core until its limit. That of functions, a second, has its own test. */
const SOON_MS = 250;
const endedSoon: Expressions = {
  evaluate: (asked) => expressions.evaluate({ budget: { leftMs: SOON_MS, eachMs: SOON_MS }, ...asked }),
};

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop({ expressions: endedSoon }).open();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const ATTACK = `"{% ${ENDLESS.replaceAll('"', '\\"')} %}"`;
const NOTE = (more: string, note = 'x') =>
  `name: attack\nsteps:\n  - { id: note, tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: ${note} }${more} }`;

describe('a workflow whose expression never ends', () => {
  it.each([
    ['with', NOTE('', ATTACK)],
    ['when', NOTE(`, when: ${ATTACK}`)],
    ['confidence', NOTE(`, confidence: ${ATTACK}`)],
    ['message', NOTE(`, message: ${ATTACK}`)],
  ])('in %s fails its step and says why, and nothing is written', async (_where, yaml) => {
    const message = await shop.begin(yaml);
    await shop.work(message);
    const { run, steps } = await shop.now(message);
    expect(run.status).toBe('failed_terminal');
    expect(steps.map(({ status }) => status)).toEqual(['failed_terminal']);
    expect(steps[0]).toMatchObject({
      error: { code: 'EXPRESSION_LIMIT_EXCEEDED', message: expect.stringContaining('takes too long') },
    });
    expect(shop.outside.incidents.get(SYS_ID)?.workNotes).toEqual([]);
  });

  it('in concurrencyKey fails its run before any step', async () => {
    const message = await shop.begin(`concurrencyKey: ${ATTACK}\n${NOTE('')}`);
    await shop.work(message);
    const { run, steps } = await shop.now(message);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'EXPRESSION_LIMIT_EXCEEDED' } });
    expect(steps).toEqual([]);
  });

  it('delays no run of another tenant that comes in the same batch', async () => {
    const ended: string[] = [];
    const shop = await new GovernedWorkshop({ expressions }).open();
    const attacks = await Promise.all(['a', 'b', 'c'].map(() => shop.begin(NOTE('', ATTACK))));
    const others = new GovernedWorkshop({ expressions });
    const sums = Array.from(
      { length: 5 },
      (_, index) => `\n  - { id: s${index}, tool: transform, with: { x: "{% $sum([1..9]) %}" } }`,
    );
    const other = await others.begin(`name: other\nsteps:${sums.join('')}`, { tenant: 'globex' });
    const batch = [
      ...attacks.map((message) => ({ shop, message })),
      { shop: others, message: { ...other, tenant: 'globex' } },
    ];
    const published = await others.definitions.workflow('acme', 'other', 1);
    if (published) await others.definitions.publishWorkflow('globex', published, 1);
    const records = batch.map(({ message }, index) => ({ messageId: String(index), body: JSON.stringify(message) }));
    const result = await processBatch(
      { Records: records } as Parameters<typeof processBatch>[0],
      { parse: (value: unknown) => value } as unknown as Parameters<typeof processBatch>[1],
      async (message) => {
        const { tenant, runId } = message as { tenant: string; runId: string };
        await (tenant === 'globex' ? others : shop).work({ tenant, runId });
        ended.push(tenant);
      },
      new MemoryLog(),
    );
    expect(result.batchItemFailures).toEqual([]);
    expect(ended).toEqual(['globex', 'acme', 'acme', 'acme']);
    expect((await others.now({ ...other, tenant: 'globex' })).run.status).toBe('succeeded');
  });
});

describe('an automation whose filter never ends', () => {
  it('starts nothing and is reported; other automations start, and the delivery is answered', async () => {
    const intake = { ...openIntake(), expressions };
    const filter = `{% ${ENDLESS} %}`;
    const ordinary = '{% $contains(trigger.title, "Checkout") %}';
    for (const name of ['a', 'b', 'c']) {
      await intake.definitions.saveAutomation('acme', automation(`never-${name}`, { filter }));
    }
    await intake.definitions.saveAutomation('acme', automation('any'));
    await intake.definitions.saveAutomation('acme', automation('direct', { filter: '{% trigger.number = 7 %}' }));
    await intake.definitions.saveAutomation('acme', automation('z-last', { filter: ordinary }));
    const fields = { title: 'Checkout fails', number: 7 };
    const delivery: Delivery = {
      source: 'github',
      event: 'issues.opened',
      key: 'github:1',
      fields,
      payload: {},
      makers: [],
    };
    const { runIds } = await acceptDelivery(intake, 'acme', delivery, 'hash');
    const runs = await Promise.all(runIds.map((runId) => intake.runs.load('acme', runId)));
    expect(runs.map((loaded) => loaded?.run.automation).sort()).toEqual(['any', 'direct', 'z-last']);
    const reported = intake.log.lines.filter(({ level }) => level === 'error').map(({ details }) => details);
    expect(reported.map(({ automation: name }) => name).sort()).toEqual(['never-a', 'never-b', 'never-c']);
  });

  it('uses up the time together with others: the delivery is still answered', async () => {
    const intake = { ...openIntake(), expressions };
    for (let index = 0; index < 40; index += 1) {
      await intake.definitions.saveAutomation('acme', automation(`never-${index}`, { filter: `{% ${ENDLESS} %}` }));
    }
    const delivery: Delivery = {
      source: 'github',
      event: 'issues.opened',
      key: 'github:1',
      fields: {},
      payload: {},
      makers: [],
    };
    expect(await acceptDelivery(intake, 'acme', delivery, 'hash')).toMatchObject({ runIds: [] });
    const why = intake.log.lines.map(({ details }) => String((details.error as Error).message));
    expect(why).toHaveLength(40);
    expect(why.filter((each) => each.includes('left no time for it; simplify them')).length).toBeGreaterThanOrEqual(20);
  });
});
