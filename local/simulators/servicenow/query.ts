import { BadRequest } from '../exchange.ts';
import type { Row } from './seed.ts';

type Test = (value: string, operand: string) => boolean;

/** Longer operators first: `>=` must not be read as `>`. */
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

/** A field name is lower case, an operator is not: that is where one ends and the other begins. */
const CLAUSE = new RegExp(`^([a-z][a-z0-9_]*)(${OPERATORS.map(([operator]) => operator).join('|')})(.*)$`, 's');

interface EncodedQuery {
  /** The value a field must equal, if the query says so: lets a reader go by index. */
  equals(field: string): string | undefined;
  apply(rows: readonly Row[]): Row[];
}

/**
 * The part of ServiceNow's encoded queries that integrations use. The real one ignores clauses it does not understand and
 * returns too much; a simulator that did so would hide the mistake, hence the refusal.
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
    if (!test) throw new BadRequest(`this simulator does not understand the clause "${clause}" of sysparm_query`);
    tests.push({ field, operator, operand, test });
  }
  return {
    equals: (field) => tests.find((test) => test.field === field && test.operator === '=')?.operand,
    apply: (rows) => {
      const kept = rows.filter((row) => tests.every(({ field, operand, test }) => test(row[field] ?? '', operand)));
      // The last key is sorted first, so that the first key decides; sorting is stable.
      for (const { field, descending } of orders.reverse()) sortBy(kept, field, descending);
      return kept;
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
