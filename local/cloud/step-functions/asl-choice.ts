/** The comparisons of a Choice state. */

import { type Fields, isFields } from '../request-fields.ts';
import { lookUp, lookUpRequired, type PathScope, StateError } from './asl-paths.ts';

type Comparison = (order: number) => boolean;

const ORDERS: Record<string, Comparison> = {
  Equals: (order) => order === 0,
  LessThan: (order) => order < 0,
  GreaterThan: (order) => order > 0,
  LessThanEquals: (order) => order <= 0,
  GreaterThanEquals: (order) => order >= 0,
};

/** How each type orders its values; undefined where a value is not of the type, and then no comparison holds. */
const TYPES: Record<string, (a: unknown, b: unknown) => number | undefined> = {
  String: (a, b) => (typeof a === 'string' && typeof b === 'string' ? compare(a, b) : undefined),
  Numeric: (a, b) => (typeof a === 'number' && typeof b === 'number' ? compare(a, b) : undefined),
  Boolean: (a, b) => (typeof a === 'boolean' && typeof b === 'boolean' ? compare(Number(a), Number(b)) : undefined),
  Timestamp: (a, b) => (isTimestamp(a) && isTimestamp(b) ? compare(Date.parse(a), Date.parse(b)) : undefined),
};

const TESTS: Record<string, (value: unknown) => boolean> = {
  IsPresent: (value) => value !== undefined,
  IsNull: (value) => value === null,
  IsString: (value) => typeof value === 'string',
  IsNumeric: (value) => typeof value === 'number',
  IsBoolean: (value) => typeof value === 'boolean',
  IsTimestamp: isTimestamp,
};

export function choose(state: Fields, scope: PathScope): string {
  const rules = Array.isArray(state.Choices) ? state.Choices.filter(isFields) : [];
  const next = rules.find((rule) => holds(rule, scope))?.Next ?? state.Default;
  if (typeof next === 'string') return next;
  throw new StateError('States.NoChoiceMatched', 'No choice rule matched and the state has no Default.');
}

function holds(rule: Fields, scope: PathScope): boolean {
  if (Array.isArray(rule.And)) return rule.And.filter(isFields).every((inner) => holds(inner, scope));
  if (Array.isArray(rule.Or)) return rule.Or.filter(isFields).some((inner) => holds(inner, scope));
  if (isFields(rule.Not)) return !holds(rule.Not, scope);
  const variable = String(rule.Variable);
  const operator = Object.keys(rule).find((key) => !['Variable', 'Next', 'Comment'].includes(key)) ?? '';
  if (operator === 'IsPresent') return (lookUp(variable, scope) !== undefined) === rule.IsPresent;
  const value = lookUpRequired(variable, scope);
  const test = TESTS[operator];
  if (test !== undefined) return test(value) === rule[operator];
  const byPath = operator.endsWith('Path');
  const name = byPath ? operator.slice(0, -'Path'.length) : operator;
  const expected = byPath ? lookUpRequired(String(rule[operator]), scope) : rule[operator];
  if (name === 'StringMatches') return typeof value === 'string' && matches(value, String(expected));
  return comparison(name)(value, expected);
}

function comparison(operator: string): (a: unknown, b: unknown) => boolean {
  const type = Object.keys(TYPES).find((name) => operator.startsWith(name)) ?? '';
  const order = ORDERS[operator.slice(type.length)];
  const compareType = TYPES[type];
  if (order === undefined || compareType === undefined) throw new Error(`unknown comparison ${operator}`);
  return (a, b) => {
    const result = compareType(a, b);
    return result !== undefined && order(result);
  };
}

/** `*` stands for any characters, `\*` for itself. */
function matches(value: string, pattern: string): boolean {
  const source = pattern.replace(/\\\*|\\\\|\*|[.+?^${}()|[\]\\]/g, (part) => {
    if (part === '*') return '.*';
    return part.length === 2 ? part : `\\${part}`;
  });
  return new RegExp(`^${source}$`, 's').test(value);
}

function isTimestamp(value: unknown): value is string {
  return (
    typeof value === 'string' && /^\d{4}-\d\d-\d\dT.+(Z|[+-]\d\d:\d\d)$/.test(value) && !Number.isNaN(Date.parse(value))
  );
}

function compare<Value extends string | number>(a: Value, b: Value): number {
  return a < b ? -1 : Number(a > b);
}
