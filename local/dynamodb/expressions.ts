import { isDeepStrictEqual } from 'node:util';
import { type AttributeValue, checkValue, compare, type Item, invalid, typeOf } from './attribute-values.ts';
import {
  COMPARISONS,
  type Operand,
  parseCondition,
  parseKeyCondition,
  parseUpdate,
  type Test,
} from './parse-expressions.ts';

/** The names and values that the expressions of one request refer to. */
export interface References {
  ExpressionAttributeNames?: Record<string, string>;
  ExpressionAttributeValues?: Record<string, AttributeValue>;
}

/** The expressions of one request with what they refer to. As in DynamoDB, each reference must be used and defined. */
export class Expressions {
  readonly #names: Record<string, string>;
  readonly #values: Record<string, AttributeValue>;
  readonly #used = new Set<string>();
  readonly #keys: readonly (string | undefined)[];

  /** `keys`: attribute names that may be written without `#`. All others need one, because DynamoDB reserves 573 words. */
  constructor(
    { ExpressionAttributeNames: names, ExpressionAttributeValues: values }: References,
    keys: readonly (string | undefined)[],
  ) {
    for (const [kind, references] of Object.entries({ Names: names, Values: values })) {
      if (references && Object.keys(references).length === 0) {
        throw invalid(`ExpressionAttribute${kind} must not be empty`);
      }
    }
    this.#keys = keys;
    this.#names = names ?? {};
    this.#values = values ?? {};
    for (const name in this.#values) checkValue(this.#values[name] ?? {});
  }

  condition(text: string): (item: Item | undefined) => boolean {
    const test = parseCondition(text);
    this.#referTo(test);
    return (item = {}) => this.#holds(test, item);
  }

  update(text: string): (item: Item) => Item {
    const { set, add, remove } = parseUpdate(text);
    const toSet = set.map(({ name, value }) => [this.name(name), this.value(value)] as const);
    const toAdd = add.map(({ name, value }) => [this.name(name), this.value(value)] as const);
    const toRemove = remove.map((name) => this.name(name));
    const changed = [...toSet.map(([name]) => name), ...toAdd.map(([name]) => name), ...toRemove];
    if (new Set(changed).size < changed.length) {
      throw invalid('Invalid UpdateExpression: Two document paths overlap with each other');
    }
    return (item) => {
      const updated = { ...item };
      for (const [name, value] of toSet) updated[name] = value;
      for (const [name, value] of toAdd) updated[name] = sum(updated[name], value);
      for (const name of toRemove) delete updated[name];
      return updated;
    };
  }

  key(text: string) {
    const { partition, sort } = parseKeyCondition(text);
    return {
      partition: { name: this.name(partition.name), value: this.value(partition.value) },
      ...(sort && {
        sort: {
          name: this.name(sort.name),
          operator: sort.operator,
          values: sort.values.map((each) => this.value(each)),
        },
      }),
    };
  }

  name(reference: string): string {
    this.#used.add(reference);
    if (this.#keys.includes(reference)) return reference;
    const name = this.#names[reference];
    if (name !== undefined) return name;
    throw invalid(
      `Invalid expression: An expression attribute name used in the document path is not defined; attribute name: ${reference}`,
    );
  }

  value(reference: string): AttributeValue {
    this.#used.add(reference);
    const value = this.#values[reference];
    if (value !== undefined) return value;
    throw invalid(
      `Invalid expression: An expression attribute value used in expression is not defined; attribute value: ${reference}`,
    );
  }

  /** After all expressions of the request. */
  checkAllUsed(): void {
    for (const [kind, references] of [['Names', this.#names] as const, ['Values', this.#values] as const]) {
      const unused = Object.keys(references).find((reference) => !this.#used.has(reference));
      if (unused === undefined) continue;
      throw invalid(`Value provided in ExpressionAttribute${kind} unused in expressions: keys: {${unused}}`);
    }
  }

  #referTo(test: Test): void {
    if ('tests' in test) for (const each of test.tests) this.#referTo(each);
    else if ('test' in test) this.#referTo(test.test);
    else {
      const operands = test.kind === 'compare' ? [test.left, test.right] : [test.of, ...(test.with ? [test.with] : [])];
      for (const each of operands) 'name' in each ? this.name(each.name) : this.value(each.value);
    }
  }

  #holds(test: Test, item: Item): boolean {
    switch (test.kind) {
      case 'and':
        return test.tests.every((each) => this.#holds(each, item));
      case 'or':
        return test.tests.some((each) => this.#holds(each, item));
      case 'not':
        return !this.#holds(test.test, item);
      case 'compare':
        return compares(test.operator, this.#of(test.left, item), this.#of(test.right, item));
      case 'function':
        return functionHolds(test.name, this.#of(test.of, item), test.with && this.#of(test.with, item));
    }
  }

  #of(operand: Operand, item: Item): AttributeValue | undefined {
    return 'name' in operand ? item[this.name(operand.name)] : this.value(operand.value);
  }
}

/** An attribute that does not exist differs from every value, and has no order. */
function compares(operator: string, left: AttributeValue | undefined, right: AttributeValue | undefined): boolean {
  if (left === undefined || right === undefined) return operator === '<>' && left !== right;
  const order = compare(left, right);
  if (operator === '=' || operator === '<>') {
    const equal = order === undefined ? isDeepStrictEqual(left, right) : order === 0;
    return equal === (operator === '=');
  }
  return order !== undefined && (COMPARISONS[operator]?.(order) ?? false);
}

function functionHolds(name: string, of: AttributeValue | undefined, other: AttributeValue | undefined): boolean {
  if (name === 'attribute_exists') return of !== undefined;
  if (name === 'attribute_not_exists') return of === undefined;
  if (of === undefined || other === undefined) return false;
  if (name === 'attribute_type') return typeOf(of) === other.S;
  return typeof of.S === 'string' && of.S.startsWith(String(other.S));
}

function sum(before: AttributeValue | undefined, added: AttributeValue): AttributeValue {
  const total = Number(before?.N ?? 0) + Number(added.N);
  if (added.N === undefined || (before !== undefined && before.N === undefined)) {
    throw invalid('An operand in the update expression has an incorrect data type');
  }
  if (!Number.isSafeInteger(total)) throw invalid('The local DynamoDB adds integers only');
  return { N: String(total) };
}
