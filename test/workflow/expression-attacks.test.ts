import { afterAll, describe, expect, it } from 'vitest';
import { wireExpressions } from '../../lambdas/workflow/expressions/expressions.wiring.ts';
import { ATTACKS, ENDLESS } from './attack-expressions.ts';

const expressions = wireExpressions();
afterAll(() => expressions.stop());

/** Not a path and no comparison: it needs a process. */
const ORDINARY = '$sum([1..10])';
/** Each uses a core until its limit. */
const ATTACK_MS = 500;
const trigger = { title: 'Checkout fails' };
const evaluate = (tenant: string, source: string) =>
  expressions.evaluate({ tenant, sources: [source], context: { trigger } });

describe('an expression that exhausts time or memory', () => {
  it.each(ATTACKS)('(%s) is ended, and later expressions are evaluated', async (_what, source) => {
    await expect(evaluate('globex', source)).rejects.toMatchObject({ code: 'EXPRESSION_LIMIT_EXCEEDED' });
    expect(await evaluate('globex', ORDINARY)).toEqual([55]);
  });

  it('blocks neither other tenants nor direct evaluation', async () => {
    const order: string[] = [];
    const attack = () => ({
      tenant: 'globex',
      sources: [ENDLESS],
      context: { trigger },
      budget: { leftMs: ATTACK_MS, eachMs: ATTACK_MS },
    });
    const attacks = Array.from({ length: 4 }, () =>
      expressions.evaluate(attack()).catch(() => order.push('attack ended')),
    );
    const direct = evaluate('globex', 'trigger.title').then(() => order.push('direct'));
    for (let turn = 0; turn < 20; turn += 1) {
      expect(await evaluate('acme', ORDINARY)).toEqual([55]);
      order.push('acme');
    }
    await Promise.all([...attacks, direct]);
    expect(order[0]).toBe('direct');
    // All expressions of acme were evaluated while the attacks ran one after the other.
    expect(order.lastIndexOf('acme')).toBeLessThan(order.lastIndexOf('attack ended'));
    expect(order.filter((each) => each === 'attack ended')).toHaveLength(4);
  });

  it('uses only the time of its own evaluation', async () => {
    const budget = { leftMs: 100, eachMs: 200 };
    const within = (source: string) =>
      expressions.evaluate({ tenant: 'globex', sources: [source], context: { trigger }, budget });
    await expect(within(ENDLESS)).rejects.toThrow('it takes too long');
    await expect(within(ORDINARY)).rejects.toThrow('the other expressions left no time for it; simplify them');
    expect(await within('trigger.title')).toEqual(['Checkout fails']);
  });
});

describe('the input of the process', () => {
  it('contains only the parts of the context that the expressions read', async () => {
    const steps = Object.fromEntries(
      Array.from({ length: 60 }, (_, index) => [`s${index}`, { output: 'x'.repeat(60_000) }]),
    );
    const of = (source: string) =>
      expressions.evaluate({ tenant: 'acme', sources: [source], context: { trigger, steps } });
    expect(await of('$length(steps.s3.output)')).toEqual([60_000]);
    await expect(of('$count(steps.*)')).rejects.toThrow('refer to the needed values by name');
  });

  it('contains no environment variables, and the time of the caller', async () => {
    expect(await evaluate('acme', '$type($$.process)')).toEqual([null]);
    const [millis] = await evaluate('acme', '$millis() = $toMillis($now())');
    expect(millis).toBe(true);
  });
});
