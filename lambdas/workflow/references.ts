import { type SyntaxNode, syntaxTree } from './expressions.ts';

/** A way from the root of what an expression can see, `["trigger", "items"]`; whatever is beneath it may be read too. */
export type Reference = string[];

const EVERYTHING: Reference = [];

/** What an expression looks at. It may name more than is really read, never less. */
export const referencesIn = (source: string): Reference[] => referencesOf(syntaxTree(source), true);

/** `atRoot`: whether a bare name here is one of the root's; in a filter or after a dot it belongs to something else. */
export function referencesOf(part: unknown, atRoot: boolean): Reference[] {
  if (Array.isArray(part)) return part.flatMap((each) => referencesOf(each, atRoot));
  if (part === null || typeof part !== 'object') return [];
  const node = part as SyntaxNode;
  if (node.type === 'path') return ofPath(node, atRoot);
  // `|pattern|update|` is about what it is applied to.
  const within = atRoot && node.type !== 'transform';
  const ofParts = Object.values(node).flatMap((child) => referencesOf(child, within));
  return looksAtEverything(node, atRoot) ? [EVERYTHING, ...ofParts] : ofParts;
}

function ofPath(path: SyntaxNode, atRoot: boolean): Reference[] {
  const [first, ...rest] = path.steps ?? [];
  if (!first) return [];
  const inside = referencesOf([first.stages, first.predicate, rest, path.group], false);
  // Binding a place to a variable, and `%`, reach back to where the path came from.
  if (path.steps?.some((step) => step.tuple === true)) return [EVERYTHING, ...inside];
  if (isRoot(first, atRoot)) return [plainNames(rest), ...inside];
  if (atRoot && first.type === 'name') return [plainNames([first, ...rest]), ...inside];
  return [...referencesOf({ ...first, stages: undefined, predicate: undefined }, atRoot), ...inside];
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
  // What `$eval` is given may be any expression.
  return node.type === 'variable' && node.value === 'eval';
}
