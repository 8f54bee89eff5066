import { type SyntaxNode, syntaxTree } from './jsonata-syntax.ts';

/** A way from the root of what an expression can see, `["trigger", "items"]`; whatever is beneath it may be read too. */
export type Reference = string[];

const EVERYTHING: Reference = [];

/** What an expression looks at. It may name more than is really read, never less. */
export const referencesIn = (source: string): Reference[] => referencesOf(syntaxTree(source));

export function referencesOf(tree: unknown, atRoot = true): Reference[] {
  const found: Reference[] = [];
  collect(tree, atRoot, found);
  return found;
}

/** `atRoot`: whether a bare name here is one of the root's; in a filter or after a dot it belongs to something else. */
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
  if (looksAtEverything(node, atRoot)) found.push(EVERYTHING);
  // `value ~> $function()` hands the value over as the first argument.
  if (node.type === 'apply' && (node.rhs as SyntaxNode).type === 'function') {
    collect(node.lhs, atRoot, found);
    collectCall(node.rhs as SyntaxNode, 1, atRoot, found);
    return;
  }
  if (node.type === 'function' || node.type === 'partial') {
    collectCall(node, 0, atRoot, found);
    return;
  }
  // `|pattern|update|` is about what it is applied to.
  const within = atRoot && node.type !== 'transform';
  for (const child of Object.values(node)) collect(child, within, found);
}

function collectCall(call: SyntaxNode, handedOver: number, atRoot: boolean, found: Reference[]): void {
  const { procedure, arguments: given, ...rest } = call;
  const { type, value } = (procedure ?? {}) as SyntaxNode;
  const expected = type === 'variable' ? (ARGUMENTS[String(value)] ?? 1) : 1;
  if (atRoot && Array.isArray(given) && given.length + handedOver < expected) found.push(EVERYTHING);
  // Called by its own name, a function is judged by the arguments it is given here.
  const isNamed = Object.keys(procedure ?? {}).every((part) => NAMED_PARTS.includes(part)) && type === 'variable';
  collect([isNamed ? undefined : procedure, given, Object.values(rest)], atRoot, found);
}

function collectPath(path: SyntaxNode, atRoot: boolean, found: Reference[]): void {
  const [first, ...rest] = path.steps ?? [];
  if (!first) return;
  // Binding a place to a variable, and `%`, reach back to where the path came from.
  if (path.steps?.some((step) => step.tuple === true)) found.push(EVERYTHING);
  else if (isRoot(first, atRoot)) found.push(plainNames(rest));
  else if (atRoot && first.type === 'name') found.push(plainNames([first, ...rest]));
  else collect({ ...first, stages: undefined, predicate: undefined }, atRoot, found);
  collect([first.stages, first.predicate, rest, path.group], false, found);
}

/** As far as the path is names alone; a filter may look at anything of what it filters. */
function plainNames(steps: SyntaxNode[]): Reference {
  const end = steps.findIndex(({ type }, index) => type !== 'name' || isFiltered(steps[index - 1]));
  return steps.slice(0, end < 0 ? steps.length : end).map(({ value }) => String(value));
}

const isFiltered = (step: SyntaxNode | undefined) => step?.stages !== undefined || step?.predicate !== undefined;

/** `$$` is the root wherever it stands, `$` only where nothing has led away from it. */
const isRoot = ({ type, value }: SyntaxNode, atRoot: boolean) =>
  type === 'variable' && (value === '$' || (value === '' && atRoot));

function looksAtEverything(node: SyntaxNode, atRoot: boolean): boolean {
  if (isRoot(node, atRoot) || node.type === 'parent') return true;
  if (node.type === 'wildcard' || node.type === 'descendant') return atRoot;
  // Under another name, `($f := $lookup; $f("steps"))`, nobody sees with how many arguments it is called.
  if (node.type === 'variable') return Number(ARGUMENTS[String(node.value)]) > 1;
  // So may a function that says what it takes: `function($x, $y)<o-n>{ $x }(1)`.
  return node.type === 'lambda' && node.signature !== undefined;
}

/** With fewer arguments than these, a function takes what it stands on as its first one: `$keys()`. */
const ARGUMENTS: Readonly<Record<string, number>> = { now: 0, millis: 0, random: 0, lookup: 2, each: 2, sift: 2 };
const NAMED_PARTS = ['type', 'value', 'position'];
