import { type SyntaxNode, syntaxTree } from './jsonata-syntax.ts';

/** A path from the root of the context, for example `["trigger", "items"]`. Includes all values below it. */
export type Reference = string[];

const EVERYTHING: Reference = [];

/** The values that an expression reads. May include more than it reads, never less. */
export const referencesIn = (source: string): Reference[] => referencesOf(syntaxTree(source));

export function referencesOf(tree: unknown, atRoot = true): Reference[] {
  const found: Reference[] = [];
  collect(tree, atRoot, found);
  return found;
}

/** `atRoot`: a bare name refers to the root. In a filter or after a dot it does not. */
function collect(part: unknown, atRoot: boolean, found: Reference[]): void {
  if (part === null || typeof part !== 'object') return;
  if (Array.isArray(part)) {
    for (const each of part) collect(each, atRoot, found);
    return;
  }
  const node = part as SyntaxNode;
  if (node.type === 'path') {
    collectPath(node, atRoot, found);
    return;
  }
  if (readsEverything(node, atRoot)) found.push(EVERYTHING);
  // `value ~> $function()` passes the value as the first argument.
  if (node.type === 'apply' && (node.rhs as SyntaxNode).type === 'function') {
    collect(node.lhs, atRoot, found);
    collectCall(node.rhs as SyntaxNode, 1, atRoot, found);
    return;
  }
  if (node.type === 'function' || node.type === 'partial') {
    collectCall(node, 0, atRoot, found);
    return;
  }
  // Names in `|pattern|update|` refer to the transformed value.
  const within = atRoot && node.type !== 'transform';
  for (const child of Object.values(node)) collect(child, within, found);
}

function collectCall(call: SyntaxNode, passedBefore: number, atRoot: boolean, found: Reference[]): void {
  const { procedure, arguments: given, ...rest } = call;
  const { type, value } = (procedure ?? {}) as SyntaxNode;
  const expected = type === 'variable' ? (ARGUMENTS[String(value)] ?? 1) : 1;
  if (atRoot && Array.isArray(given) && given.length + passedBefore < expected) found.push(EVERYTHING);
  // A function called by its own name reads only its arguments.
  const isNamed = Object.keys(procedure ?? {}).every((part) => NAMED_PARTS.includes(part)) && type === 'variable';
  collect([isNamed ? undefined : procedure, given, Object.values(rest)], atRoot, found);
}

function collectPath(path: SyntaxNode, atRoot: boolean, found: Reference[]): void {
  const [first, ...rest] = path.steps ?? [];
  if (!first) return;
  // Variable bindings and `%` can refer to any parent.
  if (path.steps?.some((step) => step.tuple === true)) found.push(EVERYTHING);
  else if (isRoot(first, atRoot)) found.push(plainNames(rest));
  else if (atRoot && first.type === 'name') found.push(plainNames([first, ...rest]));
  else collect({ ...first, stages: undefined, predicate: undefined }, atRoot, found);
  collect([first.stages, first.predicate, rest, path.group], false, found);
}

/** The names up to the first filter: a filter may read any part of the filtered value. */
function plainNames(steps: SyntaxNode[]): Reference {
  const end = steps.findIndex(({ type }, index) => type !== 'name' || isFiltered(steps[index - 1]));
  return steps.slice(0, end < 0 ? steps.length : end).map(({ value }) => String(value));
}

const isFiltered = (step: SyntaxNode | undefined) => step?.stages !== undefined || step?.predicate !== undefined;

/** `$$` is always the root, `$` only at the root. */
const isRoot = ({ type, value }: SyntaxNode, atRoot: boolean) =>
  type === 'variable' && (value === '$' || (value === '' && atRoot));

function readsEverything(node: SyntaxNode, atRoot: boolean): boolean {
  if (isRoot(node, atRoot) || node.type === 'parent') return true;
  if (node.type === 'wildcard' || node.type === 'descendant') return atRoot;
  // With an alias, `($f := $lookup; $f("steps"))`, the number of arguments is unknown.
  if (node.type === 'variable') return Number(ARGUMENTS[String(node.value)]) > 1;
  // The same for a function with a signature: `function($x, $y)<o-n>{ $x }(1)`.
  return node.type === 'lambda' && node.signature !== undefined;
}

/** With fewer arguments, a function uses the context as its first argument: `$keys()`. */
const ARGUMENTS: Readonly<Record<string, number>> = { now: 0, millis: 0, random: 0, lookup: 2, each: 2, sift: 2 };
const NAMED_PARTS = ['type', 'value', 'position'];
