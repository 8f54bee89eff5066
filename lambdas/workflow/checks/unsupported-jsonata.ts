import { NO_EVAL } from '../expressions/evaluate.ts';
import { NO_PATTERNS, type SyntaxNode } from '../expressions/jsonata-syntax.ts';

/** The functions there are, without `$eval`: JSONata has no list of them to ask for. */
export const FUNCTIONS: readonly string[] =
  `abs append assert average base64decode base64encode boolean ceil clone contains count decodeUrl decodeUrlComponent
  distinct each encodeUrl encodeUrlComponent error exists filter floor formatBase formatInteger formatNumber
  fromMillis join keys length lookup lowercase map match max merge millis min not now number pad parseInteger power random
  reduce replace reverse round shuffle sift single sort split spread sqrt string substring substringAfter substringBefore
  sum toMillis trim type uppercase zip`.split(/\s+/);

/** `$` and `$$`: what the expression stands on. */
const PLACES = ['', '$'];
/** As much of a name as must agree for another to be meant by it. */
const SAME_START = 4;

/** What no evaluation of a well-formed expression can make sense of, and what to write instead. */
export function unusableParts(tree: unknown): string[] {
  const nodes = nodesIn(tree);
  const known = new Set([...FUNCTIONS, ...PLACES, ...nodes.flatMap(namesGivenBy)]);
  return nodes.flatMap((node) => {
    if (node.type === 'regex') return [NO_PATTERNS];
    const called = calledWithoutDollar(node);
    if (called !== undefined) return [`the name of a function starts with $: write $${called}(...)`];
    return node.type === 'variable' && !known.has(String(node.value)) ? [nothingCalled(String(node.value))] : [];
  });
}

function nodesIn(part: unknown, found: SyntaxNode[] = []): SyntaxNode[] {
  if (part === null || typeof part !== 'object') return found;
  if (!Array.isArray(part)) found.push(part as SyntaxNode);
  for (const child of Object.values(part)) nodesIn(child, found);
  return found;
}

/** `$x := …`, `function($x) {…}`, `items@$x`, `items#$x`. */
function namesGivenBy({ type, lhs, arguments: taken, focus, index }: SyntaxNode): unknown[] {
  const given = type === 'bind' ? [lhs] : type === 'lambda' ? (taken as unknown[]) : [];
  return [...given.map((each) => (each as SyntaxNode).value), focus, index];
}

/** `uppercase(…)` looks for a field of that name and finds no function in it. */
function calledWithoutDollar({ type, procedure }: SyntaxNode): string | undefined {
  if (type !== 'function' && type !== 'partial') return undefined;
  const { type: kind, steps = [] } = procedure as SyntaxNode;
  const [only, ...more] = steps;
  return kind === 'path' && only?.type === 'name' && more.length === 0 ? String(only.value) : undefined;
}

function nothingCalled(name: string): string {
  if (name === 'eval') return NO_EVAL;
  const start = name.slice(0, SAME_START).toLowerCase();
  const like = start.length === SAME_START && FUNCTIONS.find((each) => each.toLowerCase().startsWith(start));
  return `there is no $${name}; ${like ? `is $${like} meant?` : 'give it a value first: ($name := value; ...)'}`;
}
