import jsonata from 'jsonata';

/** Nobody reads a longer one, and parsing takes time that nothing can interrupt. */
export const EXPRESSION_MAX_CHARACTERS = 4_000;
/** What is read recursively is bounded: no expression that people write comes near it. */
export const EXPRESSION_MAX_DEPTH = 100;

/** Patterns can take exponential time on a few dozen characters of a stranger's text. */
export const NO_PATTERNS =
  'regular expressions are not available; use $contains, $split, $substringBefore and the like';

export class PatternRefused extends Error {}

class NoPatterns {
  constructor() {
    throw new PatternRefused(NO_PATTERNS);
  }
}

/** The only way an expression is read. */
export function compile(source: string): jsonata.Expression {
  return jsonata(source, { RegexEngine: NoPatterns as unknown as RegExpConstructor });
}

/** A node of JSONata's syntax tree; its kinds differ in more ways than its own types tell. */
export interface SyntaxNode {
  type?: string;
  value?: unknown;
  steps?: SyntaxNode[];
  [part: string]: unknown;
}

/** How JSONata understands an expression. */
export const syntaxTree = (source: string): unknown => compile(source).ast();

/** An expression's syntax tree, or what is wrong with its size or syntax. */
export function readSyntax(source: string): { tree: unknown } | { wrong: string } {
  const large = tooLarge(source);
  if (large !== undefined) return { wrong: large };
  try {
    const tree = syntaxTree(source);
    return treeDepth(tree) > TREE_MAX_DEPTH ? { wrong: TOO_DEEP } : { tree };
  } catch (error) {
    if (error instanceof RangeError) return { wrong: TOO_DEEP };
    return { wrong: hasMessage(error) ? error.message : String(error) };
  }
}

/** Beyond what brackets nest: chains of operators, each of which holds the one before it. */
const TREE_MAX_DEPTH = 1_000;
const TOO_DEEP = 'it is too long a chain, or nests too deep; split it over several steps';

/** Found without calling itself, so that whatever walks the tree afterwards may. */
function treeDepth(tree: unknown): number {
  let level: unknown[] = [tree];
  for (let depth = 0; ; depth += 1) {
    if (level.length === 0 || depth > TREE_MAX_DEPTH) return depth;
    level = level.flatMap((part) => (part !== null && typeof part === 'object' ? Object.values(part) : []));
  }
}

/** Why an expression is not even parsed: its length, or how deep its brackets nest. */
export function tooLarge(source: string): string | undefined {
  if (source.length > EXPRESSION_MAX_CHARACTERS) {
    return `it has ${source.length} characters; at most ${EXPRESSION_MAX_CHARACTERS} are allowed, split it over several steps`;
  }
  return bracketDepth(source) > EXPRESSION_MAX_DEPTH
    ? `its brackets nest deeper than ${EXPRESSION_MAX_DEPTH}; split it over several steps`
    : undefined;
}

/** Brackets inside texts are counted too: that errs on the side of refusing. */
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
