import jsonata from 'jsonata';

/** Parsing cannot be interrupted. */
export const EXPRESSION_MAX_CHARACTERS = 4_000;
/** Limits recursion. */
const EXPRESSION_MAX_DEPTH = 100;

/** A regular expression can take exponential time on a short untrusted text. */
export const NO_REGEX =
  'regular expressions are not supported; use functions such as $contains, $split or $substringBefore';

export class RegexRefused extends Error {}

class NoRegex {
  constructor() {
    throw new RegexRefused(NO_REGEX);
  }
}

/** All expressions are compiled here. */
export function compile(source: string): jsonata.Expression {
  return jsonata(source, { RegexEngine: NoRegex as unknown as RegExpConstructor });
}

/** A node of JSONata's syntax tree. JSONata's own types are incomplete. */
export interface SyntaxNode {
  type?: string;
  value?: unknown;
  steps?: SyntaxNode[];
  [part: string]: unknown;
}

export const syntaxTree = (source: string): unknown => compile(source).ast();

/** The syntax tree, or the problem with the size or syntax. */
export function readSyntax(source: string): { tree: unknown } | { problem: string } {
  const large = tooLarge(source);
  if (large !== undefined) return { problem: large };
  try {
    const tree = syntaxTree(source);
    return treeDepth(tree) > TREE_MAX_DEPTH ? { problem: TOO_DEEP } : { tree };
  } catch (error) {
    if (error instanceof RangeError) return { problem: TOO_DEEP };
    return { problem: hasMessage(error) ? error.message : String(error) };
  }
}

/** A chain of operators nests without brackets. */
const TREE_MAX_DEPTH = 1_000;
const TOO_DEEP = 'it nests too deeply or has too many operators; split it into several steps';

/** Without recursion, so that later functions may recurse. */
function treeDepth(tree: unknown): number {
  let level: unknown[] = [tree];
  for (let depth = 0; ; depth += 1) {
    if (level.length === 0 || depth > TREE_MAX_DEPTH) return depth;
    level = level.flatMap((part) => (part !== null && typeof part === 'object' ? Object.values(part) : []));
  }
}

/** Checks before parsing: the length, and the nesting of brackets. */
export function tooLarge(source: string): string | undefined {
  if (source.length > EXPRESSION_MAX_CHARACTERS) {
    return `it has ${source.length} characters, but at most ${EXPRESSION_MAX_CHARACTERS} are allowed; split it into several steps`;
  }
  return bracketDepth(source) > EXPRESSION_MAX_DEPTH
    ? `its brackets nest deeper than ${EXPRESSION_MAX_DEPTH}; split it into several steps`
    : undefined;
}

/** Also counts brackets in strings, so it may report too much. */
function bracketDepth(source: string): number {
  let depth = 0;
  let deepest = 0;
  for (const character of source) {
    if ('([{'.includes(character)) deepest = Math.max(deepest, ++depth);
    else if (')]}'.includes(character)) depth -= 1;
  }
  return deepest;
}

// JSONata throws plain objects, not errors.
function hasMessage(error: unknown): error is { message: string } {
  return typeof error === 'object' && error !== null && typeof (error as { message?: unknown }).message === 'string';
}
