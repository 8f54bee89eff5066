import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { afterAll, describe, expect, it } from 'vitest';
import { FUNCTIONS } from '../../lambdas/workflow/checks/unsupported-jsonata.ts';
import {
  conditionHolds,
  type ExpressionContext,
  render as renderIn,
} from '../../lambdas/workflow/expressions/expressions.ts';
import { wireExpressions } from '../../lambdas/workflow/expressions/expressions.wiring.ts';
import { readSyntax } from '../../lambdas/workflow/expressions/jsonata-syntax.ts';
import { textsIn } from '../../lambdas/workflow/expressions/template.ts';
import { OwnThreadExpressions } from '../fakes/own-thread-expressions.ts';

const context = {
  trigger: { title: 'Checkout fails', number: 7, tags: ['a', 'b'], nothing: null, secretive: 'CANARY' },
  enrichment: { title: 'enriched' },
  steps: { route: { output: { group: { name: 'Database' } } } },
  run: { id: 'run_1' },
};
const processes = wireExpressions();
afterAll(() => processes.stop());

const IMPLEMENTATIONS = [
  { name: 'in a process of its own', expressions: processes },
  { name: 'in this thread', expressions: new OwnThreadExpressions(() => 0) },
];

describe.each(IMPLEMENTATIONS)('an expression, evaluated $name,', ({ expressions }) => {
  const render = (template: unknown, given: ExpressionContext) =>
    renderIn({ expressions, tenant: 'acme', context: given }, template);

  it.each([
    ['{% trigger.number %}', 7],
    ['  {% trigger.number %}\n', 7],
    ['{% trigger.tags %}', ['a', 'b']],
    ['{% steps.route.output.group %}', { name: 'Database' }],
    ['{% trigger.number = 7 %}', true],
    ['{% trigger.nothing %}', null],
    ['{% [] %}', []],
    ['{% run.id %}', 'run_1'],
  ])('that is a whole text, %s, becomes its value', async (text, value) => {
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

  it('without a result is null', async () => {
    expect(await render('{% trigger.missing.deeper %}', context)).toBeNull();
    expect(await render({ a: '{% steps.unknown.output %}' }, context)).toEqual({ a: null });
  });

  it('is evaluated at any depth of a template; other values stay unchanged', async () => {
    const template = { list: ['{% trigger.number %}', { deep: '{% run.id %}' }], flag: true, none: null, count: 3 };
    expect(await render(template, context)).toEqual({ list: [7, { deep: 'run_1' }], flag: true, none: null, count: 3 });
  });

  it('returns a copy that cannot change the context', async () => {
    const tags = (await render('{% trigger.tags %}', context)) as string[];
    tags.push('c');
    expect(context.trigger.tags).toEqual(['a', 'b']);
    expect(Object.getOwnPropertyNames(await render('{% trigger.tags[$ != "x"] %}', context))).toEqual([
      '0',
      '1',
      'length',
    ]);
  });

  it('can read only its context', async () => {
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

describe.each(IMPLEMENTATIONS)('a limit, $name,', ({ expressions }) => {
  const render = (template: unknown, given: ExpressionContext) =>
    renderIn({ expressions, tenant: 'acme', context: given }, template);

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
    ['a huge text of a short list', '$join([1..9000].("xxxxxxxxxxxxxxxx"))'],
  ])('ends %s', async (_what, expression) => {
    const ended = { code: 'EXPRESSION_LIMIT_EXCEEDED' };
    await expect(render(`{% ${expression} %}`, context)).rejects.toMatchObject(ended);
  });

  it.each([
    ['patterns', '$match("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /^(a+)+$/)', 'regular expressions are not supported'],
    ['expressions out of texts', '$eval("1 + 1")', '$eval is not supported'],
  ])('rejects %s', async (_what, expression, says) => {
    const failed = { code: 'EXPRESSION_FAILED', message: expect.stringContaining(says) };
    await expect(render(`{% ${expression} %}`, context)).rejects.toMatchObject(failed);
  });

  it('does not affect ordinary expressions', async () => {
    expect(await render('{% $sum([1..1000]) %}', context)).toBe(500_500);
    expect(await render('{% $count($map([1..5000], function($x) { $x * 2 })) %}', context)).toBe(5_000);
    expect(await render('{% $pad("7", -3, "0") & $pad("x", 3) & "|" %}', context)).toBe('007x  |');
  });
});

describe.each(IMPLEMENTATIONS)('a failure, $name,', ({ expressions }) => {
  const render = (template: unknown, given: ExpressionContext) =>
    renderIn({ expressions, tenant: 'acme', context: given }, template);

  it('has a readable message', async () => {
    await expect(render('{% $nosuchfn(1) %}', context)).rejects.toThrow(
      '{% $nosuchfn(1) %}: Attempted to invoke a non-function (JSONata T1006 at character 10)',
    );
    await expect(render('{% $sum("x") %}', context)).rejects.toThrow('Argument 1 of function "sum"');
  });

  it('names the expression and the position', async () => {
    const failure = { code: 'EXPRESSION_FAILED', message: expect.stringContaining('{% $number(trigger.secretive) %}') };
    await expect(render('{% $number(trigger.secretive) %}', context)).rejects.toMatchObject(failure);
  });

  it.each([
    '$number(trigger.secretive)',
    'trigger.secretive + 1',
    '$error(trigger.secretive)',
    '$toMillis(trigger.secretive)',
    '$assert(false, trigger.secretive)',
    'trigger.secretive < 1',
    '-trigger.secretive',
    '{ trigger.tags: trigger.secretive }',
  ])('of %s never quotes values', async (expression) => {
    const failure = await render(`{% ${expression} %}`, context).catch((error: Error) => error);
    expect(failure).toBeInstanceOf(Error);
    expect((failure as Error).message).not.toContain('CANARY');
  });
});

/** What is written in the installed JSONata itself. */
const JSONATA = readFileSync(createRequire(import.meta.url).resolve('jsonata'), 'utf8');

describe('assumptions about JSONata', () => {
  it('its messages quote only known parts of the expression or the values', () => {
    const sentences = [...JSONATA.matchAll(/"([SDT]\d{4})": "(.*)"/g)];
    expect(sentences.length).toBeGreaterThan(80);
    const quoting = (codes: RegExp) =>
      new Set(
        sentences
          .filter(([, code = '']) => codes.test(code))
          .flatMap(([, , said = '']) => [...said.matchAll(/\{\{\{?(\w+)/g)].map(([, part]) => part)),
      );
    expect(quoting(/^(D3137|D3141)$/)).toEqual(new Set(['message']));
    expect(quoting(/^T04/)).toEqual(new Set(['index', 'token', 'type']));
    const others = quoting(/^(?!T04|D3137|D3141)/);
    expect(others).toEqual(new Set(['token', 'value', 'value2', 'exp', 'functionName']));
  });

  it('it has exactly these functions', () => {
    const bound = [...JSONATA.matchAll(/\.bind\('(\w+)'/g)].map(([, name]) => name);
    expect([...new Set(bound)].sort()).toEqual([...FUNCTIONS, 'eval'].sort());
  });
});

describe('a condition', () => {
  it('is true or false; a missing value is false', () => {
    expect([true, false, null, undefined].map(conditionHolds)).toEqual([true, false, false, false]);
  });

  it.each(['true', 1, [], { a: 1 }])('with the value %j is an error', (value) => {
    expect(() => conditionHolds(value)).toThrow('must be true or false');
  });
});

describe('checks before anything runs', () => {
  it('find every text of a template, including field names', () => {
    expect(textsIn({ a: '{% x %}', b: [{ c: 'z' }], d: 4 })).toEqual([
      { path: ['a'], text: 'a', isName: true },
      { path: ['a'], text: '{% x %}', isName: false },
      { path: ['b'], text: 'b', isName: true },
      { path: ['b', 0, 'c'], text: 'c', isName: true },
      { path: ['b', 0, 'c'], text: 'z', isName: false },
      { path: ['d'], text: 'd', isName: true },
    ]);
  });

  it('name the problem of an expression', () => {
    expect(readSyntax('trigger.title')).toHaveProperty('tree');
    expect(readSyntax('trigger.(')).toMatchObject({ problem: expect.stringMatching(/./) });
  });
});
