import jsonata from 'jsonata';
import { wellFormed } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';

/** Bounds counted in evaluations, not milliseconds: the same expression on the same data always ends the same way. */
const EVALUATIONS_MAX = 100_000;
const DEPTH_MAX = 200;
const RESULT_MAX_BYTES = 64 * 1024;
const LIST_MAX = 10_000;

const ENTRY = Symbol.for('jsonata.__evaluate_entry') as unknown as string;
const EXIT = Symbol.for('jsonata.__evaluate_exit') as unknown as string;

const WHOLE = /^\s*\{%([\s\S]*?)%\}\s*$/;
const EMBEDDED = /\{%([\s\S]*?)%\}/g;

/** What an expression can see. Nothing else is in reach: no environment, no network, no other run. */
export interface ExpressionContext {
  trigger: Record<string, unknown>;
  enrichment?: unknown;
  steps?: Record<string, { output: unknown }>;
  run?: { id: unknown };
}

/** Replaces every `{% expression %}` in a JSON value: a string that is one expression becomes its value. */
export async function render(template: unknown, context: ExpressionContext): Promise<unknown> {
  if (typeof template === 'string') return renderText(template, context);
  if (Array.isArray(template)) return Promise.all(template.map((item) => render(item, context)));
  if (template !== null && typeof template === 'object') {
    const entries = Object.entries(template).map(async ([key, value]) => [key, await render(value, context)] as const);
    return Object.fromEntries(await Promise.all(entries));
  }
  return template;
}

async function renderText(text: string, context: ExpressionContext): Promise<unknown> {
  const written = readTemplate(text);
  if ('whole' in written) return evaluate(written.whole, context);
  const parts = written.parts.map((part) =>
    typeof part === 'string' ? part : evaluate(part.expression, context).then(asText),
  );
  return (await Promise.all(parts)).join('');
}

/** A text of a template: one expression, which may give anything, or words with expressions between them. */
export type Template = { whole: string } | { parts: (string | { expression: string })[] };

export function readTemplate(text: string): Template {
  const whole = WHOLE.exec(text);
  if (whole?.[1] !== undefined && !whole[1].includes('%}')) return { whole: whole[1] };
  const parts: (string | { expression: string })[] = [];
  let from = 0;
  for (const match of text.matchAll(EMBEDDED)) {
    parts.push(text.slice(from, match.index), { expression: match[1] ?? '' });
    from = match.index + match[0].length;
  }
  return { parts: [...parts, text.slice(from)] };
}

export function asText(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Evaluates one expression within its bounds; what it finds missing is `null`, what it breaks is EXPRESSION_FAILED. */
export async function evaluate(source: string, context: ExpressionContext): Promise<unknown> {
  try {
    const expression = compile(source);
    bound(expression);
    const value = (await expression.evaluate(context)) ?? null;
    const text = JSON.stringify(value);
    if (Buffer.byteLength(text) > RESULT_MAX_BYTES) throw new Bound(`its result exceeds ${RESULT_MAX_BYTES} bytes`);
    // JSONata marks its sequences with hidden properties; a plain copy has none.
    return wellFormed(JSON.parse(text));
  } catch (error) {
    throw new CountersignError('EXPRESSION_FAILED', `{% ${source.trim()} %}: ${reason(error)}`, { cause: error });
  }
}

/** JSONata quotes the values it stumbled over, which may be anybody's text: its code and place say enough. */
function reason(error: unknown): string {
  if (error instanceof Bound) return error.message;
  const { code, position } = (error ?? {}) as { code?: unknown; position?: unknown };
  return typeof code === 'string' ? `JSONata error ${code} at character ${position}` : 'it cannot be evaluated';
}

class Bound extends Error {}

/** Patterns can take exponential time on a few dozen characters of a stranger's text, and nothing can interrupt them. */
class NoPatterns {
  constructor() {
    throw new Bound('regular expressions are not available; use $contains, $split, $substringBefore and the like');
  }
}

function compile(source: string): jsonata.Expression {
  return jsonata(source, { RegexEngine: NoPatterns as unknown as RegExpConstructor });
}

/** Says what is wrong with an expression's syntax, or nothing. */
export function syntaxError(source: string): string | undefined {
  try {
    compile(source);
    return undefined;
  } catch (error) {
    return hasMessage(error) ? error.message : String(error);
  }
}

/** Every expression in a JSON value and where it stands, for checks before anything runs. */
export function expressionsIn(template: unknown, path: PropertyKey[] = []): { path: PropertyKey[]; source: string }[] {
  if (typeof template === 'string') {
    return [...template.matchAll(EMBEDDED)].map((match) => ({ path, source: match[1] ?? '' }));
  }
  if (template === null || typeof template !== 'object') return [];
  return Object.entries(template).flatMap(([key, value]) =>
    expressionsIn(value, [...path, Array.isArray(template) ? Number(key) : key]),
  );
}

/** How JSONata understands an expression. */
export const syntaxTree = (source: string): unknown => compile(source).ast();

function bound(expression: jsonata.Expression): void {
  let evaluations = 0;
  let depth = 0;
  expression.assign(ENTRY, () => {
    evaluations += 1;
    depth += 1;
    if (evaluations > EVALUATIONS_MAX) throw new Bound(`it takes more than ${EVALUATIONS_MAX} evaluations`);
    if (depth > DEPTH_MAX) throw new Bound(`it nests deeper than ${DEPTH_MAX}`);
  });
  expression.assign(EXIT, (_expression: unknown, _input: unknown, _environment: unknown, result: unknown) => {
    depth -= 1;
    const tooLong =
      typeof result === 'string' ? result.length > RESULT_MAX_BYTES : Array.isArray(result) && result.length > LIST_MAX;
    if (tooLong) throw new Bound(`a value in it exceeds ${RESULT_MAX_BYTES} characters or ${LIST_MAX} items`);
  });
  // The one function that can make a huge text out of nothing in a single evaluation.
  expression.registerFunction('pad', pad, '<s-ns?:s>');
}

function pad(text: string, width: number, filler = ' '): string {
  if (Math.abs(width) > RESULT_MAX_BYTES) throw new Bound(`$pad is limited to ${RESULT_MAX_BYTES} characters`);
  return width < 0 ? text.padStart(-width, filler) : text.padEnd(width, filler);
}

// JSONata throws plain objects, not errors.
function hasMessage(error: unknown): error is { message: string } {
  return typeof error === 'object' && error !== null && typeof (error as { message?: unknown }).message === 'string';
}
