import { BadRequest } from '../exchange.ts';
import type { Row } from './seed.ts';

type Test = (value: string, operand: string) => boolean;

/** Longer operators first, so that `>=` is not read as `>`. */
const OPERATORS: readonly [string, Test][] = [
  ['ISNOTEMPTY', (value) => value !== ''],
  ['ISEMPTY', (value) => value === ''],
  ['STARTSWITH', (value, operand) => value.toLowerCase().startsWith(operand.toLowerCase())],
  ['LIKE', (value, operand) => value.toLowerCase().includes(operand.toLowerCase())],
  ['IN', (value, operand) => operand.split(',').includes(value)],
  ['!=', (value, operand) => value !== operand],
  ['>=', (value, operand) => value >= operand],
  ['<=', (value, operand) => value <= operand],
  ['=', (value, operand) => value === operand],
  ['>', (value, operand) => value > operand],
  ['<', (value, operand) => value < operand],
];

/** Field names are in lower case and operators are not. */
const CLAUSE = new RegExp(`^([a-z][a-z0-9_]*)(${OPERATORS.map(([operator]) => operator).join('|')})(.*)$`, 's');

interface EncodedQuery {
  /** The value that a field must equal, if the query has such a clause. The caller can use an index for it. */
  equals(field: string): string | undefined;
  apply(rows: readonly Row[]): Row[];
}

/**
 * The part of ServiceNow's encoded queries that integrations use. ServiceNow ignores a clause that it does not understand,
 * and returns too many rows. This simulator refuses it, because that shows the mistake.
 */
export function parseEncodedQuery(encoded: string): EncodedQuery {
  const tests: { field: string; operator: string; operand: string; test: Test }[] = [];
  const orders: { field: string; descending: boolean }[] = [];
  for (const clause of encoded.split('^').filter(Boolean)) {
    const order = /^ORDERBY(DESC)?(.+)$/.exec(clause);
    if (order) {
      orders.push({ field: order[2] ?? '', descending: order[1] !== undefined });
      continue;
    }
    const [, field = '', operator = '', operand = ''] = CLAUSE.exec(clause) ?? [];
    const test = OPERATORS.find(([name]) => name === operator)?.[1];
    if (!test) throw new BadRequest(`this simulator does not support the clause "${clause}" of sysparm_query`);
    tests.push({ field, operator, operand, test });
  }
  return {
    equals: (field) => tests.find((test) => test.field === field && test.operator === '=')?.operand,
    apply: (rows) => {
      const matching = rows.filter((row) => tests.every(({ field, operand, test }) => test(row[field] ?? '', operand)));
      // The last key is sorted first, so that the first key decides; sorting is stable.
      for (const { field, descending } of orders.reverse()) sortBy(matching, field, descending);
      return matching;
    },
  };
}

/** Times have whole seconds, so equal ones are common: newest first must then mean last inserted first. */
function sortBy(rows: Row[], field: string, descending: boolean): void {
  if (descending) rows.reverse();
  rows.sort((a, b) => {
    const [left, right] = [a[field] ?? '', b[field] ?? ''];
    const order = left < right ? -1 : left > right ? 1 : 0;
    return descending ? -order : order;
  });
}
