import { describe, expect, it } from 'vitest';
import { choose } from '../../../local/cloud/step-functions/asl-choice.ts';
import { checkDefinition } from '../../../local/cloud/step-functions/asl-definition.ts';
import { fillTemplate, placeResult } from '../../../local/cloud/step-functions/asl-paths.ts';

const machine = (First: object) => ({ StartAt: 'First', States: { First } });
const data = {
  n: 5,
  limit: 6,
  s: 'inc-1',
  star: 'a*b',
  nothing: null,
  at: '2026-11-16T00:00:00Z',
  list: [{ id: 'x' }],
};
const scope = { data, context: { Execution: { Name: 'e' } } };

describe('the states language of the local host', () => {
  it.each([
    [{ Variable: '$.n', NumericGreaterThanEquals: 5 }, true],
    [{ Variable: '$.n', NumericGreaterThan: 5 }, false],
    [{ Variable: '$.n', NumericLessThanPath: '$.limit' }, true],
    [{ Variable: '$.s', StringMatches: 'inc-*' }, true],
    [{ Variable: '$.s', StringMatches: 'inc-?' }, false],
    [{ Variable: '$.star', StringMatches: 'a\\*b' }, true],
    [{ Variable: '$.s', StringMatches: 'i\\*' }, false],
    [{ Variable: '$.s', NumericEquals: 5 }, false],
    [{ Variable: '$.missing', IsPresent: false }, true],
    [{ Variable: '$.nothing', IsPresent: true }, true],
    [{ Variable: '$.nothing', IsNull: true }, true],
    [{ Variable: '$.at', TimestampLessThan: '2027-01-01T00:00:00Z' }, true],
    [{ Variable: '$$.Execution.Name', StringEquals: 'e' }, true],
    [{ Not: { Variable: '$.s', StringEquals: 'inc-1' } }, false],
    [
      {
        And: [
          { Variable: '$.n', IsNumeric: true },
          { Variable: '$.n', NumericEquals: 1 },
        ],
      },
      false,
    ],
    [
      {
        Or: [
          { Variable: '$.n', NumericEquals: 1 },
          { Variable: '$.s', StringLessThan: 'j' },
        ],
      },
      true,
    ],
  ])('chooses by %j: %s', (rule, holds) => {
    expect(choose({ Choices: [{ ...rule, Next: 'Yes' }], Default: 'No' }, scope)).toBe(holds ? 'Yes' : 'No');
  });

  it('fails a choice that nothing matches, and one whose variable is missing', () => {
    const none = { Choices: [{ Variable: '$.n', NumericEquals: 1, Next: 'Yes' }] };
    expect(() => choose(none, scope)).toThrow(/^States.NoChoiceMatched/);
    const missing = { Choices: [{ Variable: '$.x', NumericEquals: 1, Next: 'Yes' }], Default: 'No' };
    expect(() => choose(missing, scope)).toThrow(/^States.Runtime/);
  });

  it.each([
    ["States.Format('{}/{}: \\'{}\\'', $.s, $$.Execution.Name, $.list)", `inc-1/e: '[{"id":"x"}]'`],
    ["States.Array(1, 'two', true, States.Array($.n))", [1, 'two', true, [5]]],
    ['States.StringToJson(States.JsonToString($.list))', data.list],
    ['States.MathAdd($.n, -2)', 3],
    ["$.list[0]['id']", 'x'],
  ])('evaluates %s', (expression, value) => {
    expect(fillTemplate({ 'it.$': expression }, scope)).toEqual({ it: value });
  });

  it('puts a result where its path says and leaves the input alone', () => {
    const input = { a: { b: 1 } };
    expect(placeResult('$.a.c.d', input, 2)).toEqual({ a: { b: 1, c: { d: 2 } } });
    expect(placeResult(null, input, 2)).toBe(input);
    expect(input).toEqual({ a: { b: 1 } });
    expect(() => fillTemplate({ 'it.$': '$.missing' }, scope)).toThrow(/^States.ParameterPathFailure/);
  });

  it.each([
    ['JSONata', { QueryLanguage: 'JSONata', ...machine({ Type: 'Succeed' }) }],
    ['Assign', machine({ Type: 'Pass', Assign: { a: 1 }, End: true })],
    ['Map', machine({ Type: 'Map', ItemProcessor: machine({ Type: 'Succeed' }), End: true })],
    ['sqs:sendMessage', machine({ Type: 'Task', Resource: 'arn:aws:states:::sqs:sendMessage', End: true })],
    ['wildcard', machine({ Type: 'Pass', Parameters: { 'all.$': '$.items[*]' }, End: true })],
    ['States.UUID', machine({ Type: 'Pass', Parameters: { 'id.$': 'States.UUID()' }, End: true })],
    ['Nowhere', machine({ Type: 'Pass', Next: 'Nowhere' })],
    ['Assign', machine({ Type: 'Parallel', Branches: [machine({ Type: 'Pass', Assign: {}, End: true })], End: true })],
  ])('refuses a definition with %s, which it would run differently', (what, definition) => {
    const check = () => checkDefinition('Flow', definition);
    expect(check).toThrow(/^Flow: /);
    expect(check).toThrow(what);
  });
});
