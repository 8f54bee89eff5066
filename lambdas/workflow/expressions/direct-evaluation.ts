import type { ExpressionContext } from './expressions.ts';
import type { SyntaxNode } from './jsonata-syntax.ts';

/** Returned if only JSONata can evaluate the expression. */
export const NOT_DIRECT = Symbol('not evaluated directly');

/** Limits the recursion for operators. */
const DEPTH_MAX = 30;

type Direct = (context: ExpressionContext) => unknown;

/**
 * Evaluates simple expressions (a path, or a comparison with a constant) without a process, with the same result as JSONata.
 * Returns undefined for other expressions. If a path leads through a list, for which JSONata has special rules, the value is
 * NOT_DIRECT.
 */
export function directEvaluation(tree: unknown, depth = 0): Direct | undefined {
  const node = tree as SyntaxNode;
  if (depth > DEPTH_MAX) return undefined;
  switch (node.type) {
    case 'string':
    case 'number':
    case 'value':
      return () => node.value;
    case 'path':
      return pathOf(node);
    case 'binary':
      return binaryOf(node, depth + 1);
    default:
      return undefined;
  }
}

const PATH_PARTS = ['type', 'steps'];
const NAME_PARTS = ['type', 'value', 'position'];

const hasOnly = (node: SyntaxNode, parts: readonly string[]) => Object.keys(node).every((part) => parts.includes(part));

function pathOf(path: SyntaxNode): Direct | undefined {
  const steps = path.steps ?? [];
  const plain = hasOnly(path, PATH_PARTS) && steps.every((step) => step.type === 'name' && hasOnly(step, NAME_PARTS));
  if (!plain) return undefined;
  const names = steps.map(({ value }) => String(value));
  return (context) => {
    let value: unknown = context;
    for (const name of names) {
      const found = value !== null && typeof value === 'object' && Object.hasOwn(value, name);
      value = found ? (value as Record<string, unknown>)[name] : undefined;
      if (Array.isArray(value)) return NOT_DIRECT;
    }
    return value;
  };
}

type Operator = (left: unknown, right: unknown) => unknown;

const isScalar = (value: unknown) => value === null || typeof value !== 'object';
const isBoolean = (value: unknown) => typeof value === 'boolean' || value === undefined;
const isTextLike = (value: unknown) =>
  typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value) || value === undefined;

const equals: Operator = (left, right) => left !== undefined && right !== undefined && left === right;
const differs: Operator = (left, right) => left !== undefined && right !== undefined && left !== right;

/** `takes`: the operand values for which direct evaluation is correct. */
const OPERATORS: Readonly<Record<string, { takes: (value: unknown) => boolean; apply: Operator }>> = {
  '=': { takes: isScalar, apply: equals },
  '!=': { takes: isScalar, apply: differs },
  and: { takes: isBoolean, apply: (left, right) => left === true && right === true },
  or: { takes: isBoolean, apply: (left, right) => left === true || right === true },
  '&': { takes: isTextLike, apply: (left, right) => `${left ?? ''}${right ?? ''}` },
};

function binaryOf({ value, lhs, rhs }: SyntaxNode, depth: number): Direct | undefined {
  const operator = OPERATORS[String(value)];
  const left = operator && directEvaluation(lhs, depth);
  const right = left && directEvaluation(rhs, depth);
  if (!operator || !left || !right) return undefined;
  return (context) => {
    const values = [left(context), right(context)];
    const known = values.every((each) => each !== NOT_DIRECT && operator.takes(each));
    return known ? operator.apply(values[0], values[1]) : NOT_DIRECT;
  };
}
