import { expect, it } from 'vitest';
import { mathValue } from '../../../local/cloud/cloudwatch/metric-math.ts';

it.each([
  ['a + b * 2', { a: 1, b: 3 }, 7],
  ['(a + b) / 2 - 1', { a: 1, b: 3 }, 1],
  ['a + b', { a: 1, b: undefined }, undefined],
  ['FILL(a, 0) + FILL(b, 0)', { a: undefined, b: 3 }, 3],
  ['IF(a >= 10, b / a, 0)', { a: 20, b: 1 }, 0.05],
  ['IF(a >= 10, b / a, 0)', { a: 9, b: 1 }, 0],
  ['IF(FILL(a, 0) >= 10, (100 - b) / 100, 0)', { a: undefined, b: undefined }, 0],
  ['a / b', { a: 1, b: 0 }, undefined],
])('%s with %j is %s', (expression, values, expected) => {
  expect(mathValue(expression, values)).toBe(expected);
});

it.each(['a +', 'RATE(a)', 'unknown', 'a b', 'IF(a, 1)', 'a & 1'])('%s is refused', (expression) => {
  expect(() => mathValue(expression, { a: 1 })).toThrow('metric math');
});
