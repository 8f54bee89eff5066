import { describe, expect, it } from 'vitest';
import { compile } from '../../lambdas/workflow/expressions/jsonata-syntax.ts';
import { referencesIn } from '../../lambdas/workflow/expressions/references.ts';

describe('the references of an expression', () => {
  it.each<[string, string[][]]>([
    ['trigger.title', [['trigger', 'title']]],
    ['"steps.none" & trigger.title', [['trigger', 'title']]],
    [
      'steps.a.output = steps."b".output',
      [
        ['steps', 'a', 'output'],
        ['steps', 'b', 'output'],
      ],
    ],
    ['$$.steps.a', [['steps', 'a']]],
    ['$.trigger.`odd name`', [['trigger', 'odd name']]],
    ['($x := trigger.a; $x.b)', [['trigger', 'a']]],
    ['{"a": trigger.x}', [['trigger', 'x']]],
    ['trigger.a ~> $uppercase()', [['trigger', 'a']]],
    ['trigger ~> |a|{"x": 1}|', [['trigger']]],
    ['42', []],
  ])('%s are found by name', (source, references) => {
    expect(referencesIn(source)).toEqual(references);
  });

  it.each<[string, string[][]]>([
    ['trigger.items[kind = "x"].name', [['trigger', 'items']]],
    ['trigger.items{kind: $sum(n)}', [['trigger', 'items']]],
    ['trigger.items^(>n)', [['trigger', 'items']]],
    ['trigger.a.$uppercase(title)', [['trigger', 'a']]],
    [
      'trigger.items[$$.steps.a.output = id]',
      [
        ['trigger', 'items'],
        ['steps', 'a', 'output'],
      ],
    ],
    ['steps.*.output', [['steps']]],
  ])('%s: names in filters and after dots do not refer to the root', (source, references) => {
    expect(referencesIn(source)).toEqual(references);
  });

  it.each(['$$', '$', '*', '**.output', '$keys()', '$lookup("run")', '$each($f)', 'trigger@$t.steps.x', 'a.%.b'])(
    '%s may look at everything',
    (source) => {
      expect(referencesIn(source)).toContainEqual([]);
    },
  );

  const seen = { trigger: { items: [1] }, steps: { m: { output: { channel: '#x' } } } };

  it.each([
    '(function($o, $n)<o-n:x>{ $o })(1).steps.m.output.channel',
    '($f := function($o, $n)<o-n:x>{ $o }; $f(1).steps.m.output.channel)',
    '("steps" ~> $lookup()).m.output.channel',
    '(function(){ true } ~> $sift()).steps.m.output.channel',
    '($l := $lookup; $l("steps").m.output.channel)',
    '($l := $sift; $l(function(){ true }).steps.m.output.channel)',
    '(trigger; $lookup)("steps").m.output.channel',
    '[$lookup][0]("steps").m.output.channel',
    '(true ? $lookup : 1)("steps").m.output.channel',
    '$map([$sift], function($f){ $f(function(){ true }).steps.m.output.channel })',
    '$reduce([$sift, 1], function($f, $b){ $f(function(){ true }).steps.m.output.channel })',
    '$sift(function(){ true }).steps.m.output.channel',
    '$clone().steps.m.output.channel',
    '$spread().steps.m.output.channel',
  ])('%s reads the whole context', async (source) => {
    expect(JSON.stringify(await compile(source).evaluate(seen))).toBe('"#x"');
    expect(referencesIn(source)).toContainEqual([]);
  });

  it.each(['$map(trigger.items, $string)', 'trigger.items ~> $map($uppercase)', '$lookup(trigger, "title")'])(
    '%s looks at the trigger alone',
    (source) => {
      expect(referencesIn(source).map(([root]) => root)).toEqual(['trigger']);
    },
  );
});
