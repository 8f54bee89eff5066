import { describe, expect, it } from 'vitest';
import { expressionsIn, render, syntaxError } from '../../lambdas/workflow/expressions.ts';

const context = {
  trigger: { title: 'Checkout fails', number: 7, tags: ['a', 'b'], nothing: null, secretive: 'CANARY' },
  enrichment: { title: 'enriched' },
  steps: { route: { output: { group: { name: 'Database' } } } },
  run: { id: 'run_1' },
};
/** Far more than any bound needs, far less than a stuck expression would take. */
const PROMPT_MS = 2_000;

describe('an expression', () => {
  it.each([
    ['{% trigger.number %}', 7],
    ['  {% trigger.number %}\n', 7],
    ['{% trigger.tags %}', ['a', 'b']],
    ['{% steps.route.output.group %}', { name: 'Database' }],
    ['{% trigger.number = 7 %}', true],
    ['{% trigger.nothing %}', null],
    ['{% [] %}', []],
    ['{% run.id %}', 'run_1'],
  ])('that is the whole of a text, %s, becomes its value', async (text, value) => {
    expect(await render(text, context)).toEqual(value);
  });

  it.each([
    ['#{% trigger.number %}', '#7'],
    ['{% trigger.number %}{% trigger.number %}', '77'],
    ['{% trigger.title %}: {% enrichment.title %}', 'Checkout fails: enriched'],
    ['tags {% trigger.tags %}', 'tags ["a","b"]'],
    ['[{% trigger.missing %}{% trigger.nothing %}]', '[]'],
    ['no expression', 'no expression'],
    ['{% unfinished', '{% unfinished'],
  ])('within a text, %s, becomes text', async (text, value) => {
    expect(await render(text, context)).toBe(value);
  });

  it('that finds nothing is null', async () => {
    expect(await render('{% trigger.missing.deeper %}', context)).toBeNull();
    expect(await render({ a: '{% steps.unknown.output %}' }, context)).toEqual({ a: null });
  });

  it('is found at any depth of a template, and everything else stays as it is', async () => {
    const template = { list: ['{% trigger.number %}', { deep: '{% run.id %}' }], flag: true, none: null, count: 3 };
    expect(await render(template, context)).toEqual({ list: [7, { deep: 'run_1' }], flag: true, none: null, count: 3 });
  });

  it('gives a plain copy: nothing of the context can be changed through it', async () => {
    const tags = (await render('{% trigger.tags %}', context)) as string[];
    tags.push('c');
    expect(context.trigger.tags).toEqual(['a', 'b']);
    expect(Object.getOwnPropertyNames(await render('{% trigger.tags[$ != "x"] %}', context))).toEqual([
      '0',
      '1',
      'length',
    ]);
  });

  it('reaches nothing but its context', async () => {
    for (const name of [
      'process',
      'globalThis',
      'require',
      'constructor',
      '__proto__',
      'trigger.constructor',
      '$now.constructor',
    ]) {
      expect([name, await render(`{% ${name} %}`, context)]).toEqual([name, null]);
    }
  });
});

describe('a bound', () => {
  it.each([
    ['endless recursion', '($f := function($n) { $f($n + 1) }; $f(0))'],
    ['endless nesting', '($f := function($n) { $f($n + 1) + 1 }; $f(0))'],
    ['a huge range', '[1..10000000]'],
    ['a huge range that is only counted', '$count([1..10000000])'],
    ['a range of ranges', '$map([1..1000], function($x) { [1..10000] })'],
    ['a huge text out of nothing', '$length($pad("x", 500000000))'],
    [
      'a text that doubles',
      '($d := function($t, $n) { $n = 0 ? $t : $d($t & $t, $n - 1) }; $length($d("xxxxxxxx", 40)))',
    ],
    ['too large a result', '$pad("x", 65535)'],
    ['too large a result in bytes, not in characters', '$pad("", 40000, "€")'],
    ['a pattern that backtracks for ever', '$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /^(a+)+$/)'],
    ['a pattern in a text', '$eval("$match(\\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\\", /^(a+)+$/)")'],
  ])('ends %s, promptly', async (_what, expression) => {
    const began = process.cpuUsage();
    await expect(render(`{% ${expression} %}`, context)).rejects.toMatchObject({ code: 'EXPRESSION_FAILED' });
    // Work done, not time passed: a busy machine changes nothing about it.
    expect(process.cpuUsage(began).user / 1000).toBeLessThan(PROMPT_MS);
  });

  it('leaves ordinary work alone', async () => {
    expect(await render('{% $sum([1..1000]) %}', context)).toBe(500_500);
    expect(await render('{% $count($map([1..5000], function($x) { $x * 2 })) %}', context)).toBe(5_000);
    expect(await render('{% $pad("7", -3, "0") & $pad("x", 3) & "|" %}', context)).toBe('007x  |');
  });
});

describe('a failure', () => {
  it('says which expression failed and where', async () => {
    const failure = { code: 'EXPRESSION_FAILED', message: expect.stringContaining('{% $number(trigger.secretive) %}') };
    await expect(render('{% $number(trigger.secretive) %}', context)).rejects.toMatchObject(failure);
  });

  it.each([
    '$number(trigger.secretive)',
    'trigger.secretive + 1',
    '$error(trigger.secretive)',
    '$toMillis(trigger.secretive)',
  ])('of %s never quotes the values it stumbled over', async (expression) => {
    const failure = await render(`{% ${expression} %}`, context).catch((error: Error) => error);
    expect(failure).toBeInstanceOf(Error);
    expect((failure as Error).message).not.toContain('CANARY');
  });
});

describe('checks before anything runs', () => {
  it('find every expression of a template', () => {
    expect(expressionsIn({ a: '{% x %} and {% y %}', b: [{ c: '{% z %}' }], d: 4 })).toEqual([
      { path: ['a'], source: ' x ' },
      { path: ['a'], source: ' y ' },
      { path: ['b', 0, 'c'], source: ' z ' },
    ]);
  });

  it('say what is wrong with an expression', () => {
    expect(syntaxError('trigger.title')).toBeUndefined();
    expect(syntaxError('trigger.(')).toMatch(/./);
  });
});
