import { describe, expect, it } from 'vitest';
import { referencesIn } from '../../lambdas/workflow/references.ts';

describe('what an expression looks at', () => {
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
  ])('%s is known by name', (source, references) => {
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
  ])('%s: names in filters and behind dots are not the root’s', (source, references) => {
    expect(referencesIn(source)).toEqual(references);
  });

  it.each(['$$', '$', '*', '**.output', '$keys()', '$lookup("run")', '$each($f)', 'trigger@$t.steps.x', 'a.%.b'])(
    '%s may look at everything',
    (source) => {
      expect(referencesIn(source)).toContainEqual([]);
    },
  );
});
