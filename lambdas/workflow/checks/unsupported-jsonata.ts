import { didYouMean } from '../../entry/did-you-mean.ts';
import { NO_EVAL } from '../expressions/evaluate.ts';
import { NO_REGEX, type SyntaxNode } from '../expressions/jsonata-syntax.ts';

/** JSONata's functions except `$eval`. JSONata offers no list. */
export const FUNCTIONS: readonly string[] =
  `abs append assert average base64decode base64encode boolean ceil clone contains count decodeUrl decodeUrlComponent
  distinct each encodeUrl encodeUrlComponent error exists filter floor formatBase formatInteger formatNumber
  fromMillis join keys length lookup lowercase map match max merge millis min not now number pad parseInteger power random
  reduce replace reverse round shuffle sift single sort split spread sqrt string substring substringAfter substringBefore
  sum toMillis trim type uppercase zip`.split(/\s+/);

/** `$` and `$$`, the context. */
const PLACES = ['', '$'];

/** Finds parts of a well-formed expression that always fail, with what to write instead. */
export function unsupportedParts(tree: unknown): string[] {
  const nodes = nodesIn(tree);
  const known = new Set([...FUNCTIONS, ...PLACES, ...nodes.flatMap(namesDefinedBy)]);
  return nodes.flatMap((node) => {
    if (node.type === 'regex') return [NO_REGEX];
    const called = calledWithoutDollar(node);
    if (called !== undefined) return [`function names start with $: write $${called}(...)`];
    return node.type === 'variable' && !known.has(String(node.value)) ? [unknownVariable(String(node.value))] : [];
  });
}

function nodesIn(part: unknown, found: SyntaxNode[] = []): SyntaxNode[] {
  if (part === null || typeof part !== 'object') return found;
  if (!Array.isArray(part)) found.push(part as SyntaxNode);
  for (const child of Object.values(part)) nodesIn(child, found);
  return found;
}

/** `$x := …`, `function($x) {…}`, `items@$x`, `items#$x`. */
function namesDefinedBy({ type, lhs, arguments: taken, focus, index }: SyntaxNode): unknown[] {
  const given = type === 'bind' ? [lhs] : type === 'lambda' ? (taken as unknown[]) : [];
  return [...given.map((each) => (each as SyntaxNode).value), focus, index];
}

/** `uppercase(…)` calls a field of that name, which is not a function. */
function calledWithoutDollar({ type, procedure }: SyntaxNode): string | undefined {
  if (type !== 'function' && type !== 'partial') return undefined;
  const { type: kind, steps = [] } = procedure as SyntaxNode;
  const [only, ...more] = steps;
  return kind === 'path' && only?.type === 'name' && more.length === 0 ? String(only.value) : undefined;
}

function unknownVariable(name: string): string {
  if (name === 'eval') return NO_EVAL;
  const hint = didYouMean(name, FUNCTIONS, (close) => `$${close}`);
  return `unknown variable or function $${name}${hint || '; define it first: ($name := value; ...)'}`;
}
