/** The values of the metrics of an expression, by id. A metric without values has none. */
export type MathValues = Readonly<Record<string, number | undefined>>;

const TOKEN = /\s*(>=|<=|[-+*/(),><]|\d+(?:\.\d+)?|[a-zA-Z_]\w*)/y;
const FUNCTIONS = ['FILL', 'IF'];
/** By expression: an alarm has one, for all its minutes. */
const TOKENS = new Map<string, string[]>();

/**
 * The value of a metric math expression: numbers, ids, + - * / and comparisons, FILL(id, number) and IF(condition, then,
 * else). As in CloudWatch, an expression has no value while one of its metrics has none, unless FILL gives it one.
 */
export function mathValue(expression: string, values: MathValues): number | undefined {
  const tokens = TOKENS.get(expression) ?? tokensOf(expression);
  TOKENS.set(expression, tokens);
  let at = 0;
  const refuse = (): never => {
    throw new Error(`the local host does not support the metric math ${expression}`);
  };
  const take = (expected?: string): string => {
    const token = tokens[at] ?? refuse();
    if (expected !== undefined && token !== expected) refuse();
    at += 1;
    return token;
  };
  const comparison = (): number | undefined => {
    const left = sum();
    const operator = tokens[at] ?? '';
    if (!(operator in COMPARE)) return left;
    take();
    const right = sum();
    return left === undefined || right === undefined ? undefined : Number(COMPARE[operator]?.(left, right));
  };
  const chain = (operators: Record<string, Combine>, next: () => number | undefined) => (): number | undefined => {
    let left = next();
    for (let operator = operators[tokens[at] ?? '']; operator; operator = operators[tokens[at] ?? '']) {
      take();
      const right = next();
      left = left === undefined || right === undefined ? undefined : operator(left, right);
    }
    return left;
  };
  const argumentsOf = (count: number): (number | undefined)[] => {
    take('(');
    const found = Array.from({ length: count }, (_, index) => {
      if (index > 0) take(',');
      return comparison();
    });
    take(')');
    return found;
  };
  const atom = (): number | undefined => {
    const token = take();
    if (token === '(') {
      const value = comparison();
      take(')');
      return value;
    }
    if (/^\d/.test(token)) return Number(token);
    if (token === 'FILL') {
      const [value, otherwise] = argumentsOf(2);
      return value ?? otherwise;
    }
    if (token === 'IF') {
      const [condition, then, otherwise] = argumentsOf(3);
      return condition === undefined ? undefined : condition === 0 ? otherwise : then;
    }
    return token in values && !FUNCTIONS.includes(token) ? values[token] : refuse();
  };
  const product = chain({ '*': (a, b) => a * b, '/': (a, b) => (b === 0 ? undefined : a / b) }, atom);
  const sum = chain({ '+': (a, b) => a + b, '-': (a, b) => a - b }, product);
  const value = comparison();
  return at === tokens.length ? value : refuse();
}

type Combine = (left: number, right: number) => number | undefined;

const COMPARE: Record<string, (left: number, right: number) => boolean> = {
  '>': (left, right) => left > right,
  '>=': (left, right) => left >= right,
  '<': (left, right) => left < right,
  '<=': (left, right) => left <= right,
};

function tokensOf(expression: string): string[] {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < expression.trimEnd().length) {
    const from = TOKEN.lastIndex;
    const [, token] = TOKEN.exec(expression) ?? [];
    if (token === undefined) throw new Error(`metric math ${expression}: unexpected text at ${from}`);
    tokens.push(token);
  }
  return tokens;
}
