import { invalid } from './attribute-values.ts';

export type Operand = { name: string } | { value: string };
export type Test =
  | { kind: 'and' | 'or'; tests: Test[] }
  | { kind: 'not'; test: Test }
  | { kind: 'compare'; operator: string; left: Operand; right: Operand }
  | { kind: 'function'; name: string; of: Operand; with?: Operand };

interface Update {
  set: { name: string; value: string }[];
  add: { name: string; value: string }[];
  remove: string[];
}

/** How a query restricts the keys. */
interface KeyCondition {
  partition: { name: string; value: string };
  sort?: { name: string; operator: string; values: string[] };
}

/** Functions with one and with two operands. */
const FUNCTIONS: Record<string, number> = {
  attribute_exists: 1,
  attribute_not_exists: 1,
  attribute_type: 2,
  begins_with: 2,
};
export const COMPARISONS: Record<string, (order: number) => boolean> = {
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
};

/** Functions send the same few texts again and again. */
const PARSED_MAX = 1_000;
const parsed = new Map<string, unknown>();
function parseOnce<T>(kind: string, text: string, parse: (words: Words) => T): T {
  const key = `${kind} ${text}`;
  const known = parsed.get(key);
  if (known !== undefined) return known as T;
  const words = new Words(text);
  const result = parse(words);
  words.end();
  if (parsed.size >= PARSED_MAX) parsed.clear();
  parsed.set(key, result);
  return result;
}

/** The words of an expression, read from left to right. What this engine does not support is refused. */
class Words {
  readonly #text: string;
  readonly #words: string[];
  #next = 0;

  constructor(text: string) {
    this.#text = text;
    this.#words = text.match(/<>|<=|>=|[=<>(),]|[#:]?\w+|\S/g) ?? [];
  }

  get next(): string | undefined {
    return this.#words[this.#next];
  }

  take(): string {
    const word = this.#words[this.#next];
    if (word === undefined) throw this.unsupported();
    this.#next += 1;
    return word;
  }

  takeIf(word: string): boolean {
    if (this.next?.toUpperCase() !== word) return false;
    this.#next += 1;
    return true;
  }

  expect(word: string): void {
    if (!this.takeIf(word)) throw this.unsupported();
  }

  name(): string {
    const word = this.take();
    if (!/^#?\w+$/.test(word)) throw this.unsupported();
    return word;
  }

  value(): string {
    const word = this.take();
    if (!word.startsWith(':')) throw this.unsupported();
    return word;
  }

  end(): void {
    if (this.next !== undefined) throw this.unsupported();
  }

  unsupported() {
    const at = this.next === undefined ? 'its end' : `"${this.next}"`;
    return invalid(`Invalid expression: the local DynamoDB does not support ${at} in: ${this.#text}`);
  }
}

/** `attribute_not_exists(#pk) OR (#outcome <> :succeeded AND #runId = :runId)` */
export const parseCondition = (text: string): Test => parseOnce('condition', text, anyOf);

function anyOf(words: Words): Test {
  const tests = [allOf(words)];
  while (words.takeIf('OR')) tests.push(allOf(words));
  return tests.length === 1 && tests[0] ? tests[0] : { kind: 'or', tests };
}

function allOf(words: Words): Test {
  const tests = [oneOf(words)];
  while (words.takeIf('AND')) tests.push(oneOf(words));
  return tests.length === 1 && tests[0] ? tests[0] : { kind: 'and', tests };
}

function oneOf(words: Words): Test {
  if (words.takeIf('NOT')) return { kind: 'not', test: oneOf(words) };
  if (words.takeIf('(')) {
    const test = anyOf(words);
    words.expect(')');
    return test;
  }
  const operands = Object.hasOwn(FUNCTIONS, words.next ?? '') ? FUNCTIONS[words.next ?? ''] : undefined;
  return operands === undefined ? comparison(words) : functionCall(words, operands);
}

function functionCall(words: Words, operands: number): Test {
  const name = words.take();
  words.expect('(');
  const of = operand(words);
  if (operands === 2) words.expect(',');
  const test: Test = { kind: 'function', name, of, ...(operands === 2 && { with: operand(words) }) };
  words.expect(')');
  return test;
}

function comparison(words: Words): Test {
  const left = operand(words);
  const operator = words.take();
  if (!Object.hasOwn(COMPARISONS, operator) && operator !== '=' && operator !== '<>') throw words.unsupported();
  return { kind: 'compare', operator, left, right: operand(words) };
}

const operand = (words: Words): Operand =>
  words.next?.startsWith(':') ? { value: words.value() } : { name: words.name() };

/** `SET #a = :a, #b = :b REMOVE #c ADD #d :d` */
export function parseUpdate(text: string): Update {
  return parseOnce('update', text, (words) => {
    const update: Update = { set: [], add: [], remove: [] };
    const clauses = new Set<string>();
    if (words.next === undefined) throw invalid('Invalid UpdateExpression: The expression can not be empty');
    while (words.next !== undefined) {
      const clause = words.take().toUpperCase();
      if (clauses.has(clause)) throw invalid(`The "${clause}" section can only be used once in an update expression`);
      clauses.add(clause);
      do {
        const name = words.name();
        if (clause === 'REMOVE') update.remove.push(name);
        else if (clause === 'ADD') update.add.push({ name, value: words.value() });
        else if (clause === 'SET') {
          words.expect('=');
          update.set.push({ name, value: words.value() });
        } else throw words.unsupported();
      } while (words.takeIf(','));
    }
    return update;
  });
}

/** `pk = :pk AND sk BETWEEN :from AND :to` */
export function parseKeyCondition(text: string): KeyCondition {
  return parseOnce('key condition', text, (words) => {
    const name = words.name();
    words.expect('=');
    const partition = { name, value: words.value() };
    return words.takeIf('AND') ? { partition, sort: sortKeyTest(words) } : { partition };
  });
}

function sortKeyTest(words: Words): NonNullable<KeyCondition['sort']> {
  if (words.next === 'begins_with') {
    const call = functionCall(words, 2);
    if (call.kind !== 'function' || !('name' in call.of) || !call.with || !('value' in call.with))
      throw words.unsupported();
    return { name: call.of.name, operator: 'begins_with', values: [call.with.value] };
  }
  const name = words.name();
  if (words.takeIf('BETWEEN')) {
    const from = words.value();
    words.expect('AND');
    return { name, operator: 'BETWEEN', values: [from, words.value()] };
  }
  const operator = words.take();
  if (!Object.hasOwn(COMPARISONS, operator) && operator !== '=') throw words.unsupported();
  return { name, operator, values: [words.value()] };
}
