import { afterAll, describe, expect, it } from 'vitest';
import { wireExpressions } from '../../lambdas/workflow/expressions/expressions.wiring.ts';
import { ATTACKS, ENDLESS } from './attack-expressions.ts';

const expressions = wireExpressions();
afterAll(() => expressions.stop());

/** Not a path and no comparison: it needs a process. */
const ORDINARY = '$sum([1..10])';
const trigger = { title: 'Checkout fails' };
const evaluate = (tenant: string, source: string) =>
  expressions.evaluate({ tenant, sources: [source], context: { trigger } });

describe('an expression that takes all the time or memory it can get', () => {
  it.each(ATTACKS)('(%s) is ended, and what follows is evaluated', async (_what, source) => {
    await expect(evaluate('globex', source)).rejects.toMatchObject({ code: 'EXPRESSION_LIMIT_EXCEEDED' });
    expect(await evaluate('globex', ORDINARY)).toEqual([55]);
  });

  it('does not keep another tenant waiting, nor what needs no process', async () => {
    const order: string[] = [];
    const attacks = Array.from({ length: 4 }, () =>
      evaluate('globex', ENDLESS).catch(() => order.push('attack ended')),
    );
    const direct = evaluate('globex', 'trigger.title').then(() => order.push('direct'));
    for (let turn = 0; turn < 20; turn += 1) {
      expect(await evaluate('acme', ORDINARY)).toEqual([55]);
      order.push('acme');
    }
    await Promise.all([...attacks, direct]);
    expect(order[0]).toBe('direct');
    // All of acme's came to their turn while one attack after the other was let run to its end.
    expect(order.lastIndexOf('acme')).toBeLessThan(order.lastIndexOf('attack ended'));
    expect(order.filter((each) => each === 'attack ended')).toHaveLength(4);
  });

  it('uses up only the time it shares with the others', async () => {
    const budget = { leftMs: 100, eachMs: 200 };
    const within = (source: string) =>
      expressions.evaluate({ tenant: 'globex', sources: [source], context: { trigger }, budget });
    await expect(within(ENDLESS)).rejects.toThrow('it takes too long');
    await expect(within(ORDINARY)).rejects.toThrow('have used up the time for all');
    expect(await within('trigger.title')).toEqual(['Checkout fails']);
  });
});

describe('what a process is given', () => {
  it('is the part of the context that is looked at', async () => {
    const steps = Object.fromEntries(
      Array.from({ length: 60 }, (_, index) => [`s${index}`, { output: 'x'.repeat(60_000) }]),
    );
    const of = (source: string) =>
      expressions.evaluate({ tenant: 'acme', sources: [source], context: { trigger, steps } });
    expect(await of('$length(steps.s3.output)')).toEqual([60_000]);
    await expect(of('$count(steps.*)')).rejects.toThrow('name the values it needs');
  });

  it('is no environment, and the time of whoever asks', async () => {
    expect(await evaluate('acme', '$type($$.process)')).toEqual([null]);
    const [millis] = await evaluate('acme', '$millis() = $toMillis($now())');
    expect(millis).toBe(true);
  });
});
