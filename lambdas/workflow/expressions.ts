import jsonata from 'jsonata';
import { wellFormed } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import { readTemplate } from './template.ts';

/** Bounds counted in evaluations, not milliseconds: the same expression on the same data always ends the same way. */
const EVALUATIONS_MAX = 100_000;
const DEPTH_MAX = 200;
const RESULT_MAX_BYTES = 64 * 1024;
const LIST_MAX = 10_000;

const ENTRY = Symbol.for('jsonata.__evaluate_entry') as unknown as string;
const EXIT = Symbol.for('jsonata.__evaluate_exit') as unknown as string;

/** What an expression can see. Nothing else is in reach: no environment, no network, no other run. */
export interface ExpressionContext {
  trigger: Record<string, unknown>;
  enrichment?: unknown;
  steps?: Record<string, { output: unknown }>;
  run?: { id: unknown };
}

/** How one expression becomes a value, and words with values between them a text. */
export interface Rendering {
  evaluate(source: string, context: ExpressionContext): unknown;
  join(parts: unknown[]): unknown;
}

const AS_VALUES: Rendering = { evaluate, join: (parts) => parts.map(asText).join('') };

/** Replaces every `{% expression %}` in a JSON value: a string that is one expression becomes its value. */
export async function render(template: unknown, context: ExpressionContext, how = AS_VALUES): Promise<unknown> {
  if (typeof template === 'string') return renderText(template, context, how);
  if (Array.isArray(template)) return Promise.all(template.map((item) => render(item, context, how)));
  if (template === null || typeof template !== 'object') return template;
  const entries = Object.entries(template).map(
    async ([key, value]) => [key, await render(value, context, how)] as const,
  );
  return Object.fromEntries(await Promise.all(entries));
}

async function renderText(text: string, context: ExpressionContext, how: Rendering): Promise<unknown> {
  const written = readTemplate(text);
  if ('whole' in written) return how.evaluate(written.whole, context);
  const parts = written.parts.map((part) => (typeof part === 'string' ? part : how.evaluate(part.expression, context)));
  return how.join(await Promise.all(parts));
}

export function asText(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Of a condition: what is not there is no; anything else that is neither yes nor no was meant as something else. */
export function conditionHolds(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value === 'boolean') return value;
  throw new CountersignError('EXPRESSION_FAILED', '`when` gave neither true nor false; compare with something');
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
    throw new CountersignError('EXPRESSION_FAILED', `{% ${source} %}: ${reason(error)}`, { cause: error });
  }
}

/** Of these the sentence is whatever the expression made it. */
const SAYS_ITSELF = ['D3137', 'D3141'];

/** Of these it tells which argument is meant, and no value. */
const OF_ARGUMENTS = /^T04/;

/** JSONata's own sentence, without the values it stumbled over: those may be anybody's text. */
function reason(error: unknown): string {
  if (error instanceof Bound) return error.message;
  const { code, position, message, ...parts } = (error ?? {}) as Record<string, unknown>;
  if (typeof code !== 'string' || typeof message !== 'string') return 'it cannot be evaluated';
  const says = OF_ARGUMENTS.test(code) ? message : withoutValues(message, parts);
  const said = SAYS_ITSELF.includes(code) ? 'it ends itself with $error or $assert' : says;
  return `${said} (JSONata ${code}${typeof position === 'number' ? ` at character ${position}` : ''})`;
}

/** What JSONata puts into its sentences of the values, not of the expression. */
function withoutValues(message: string, { value, value2, exp }: Record<string, unknown>): string {
  const quoted = [value, value2, exp].map((each) => JSON.stringify(each) ?? 'undefined');
  return quoted.reduce((said, each) => said.replaceAll(each, '…'), message);
}

class Bound extends Error {}

/** Patterns can take exponential time on a few dozen characters of a stranger's text, and nothing can interrupt them. */
export const NO_PATTERNS =
  'regular expressions are not available; use $contains, $split, $substringBefore and the like';

class NoPatterns {
  constructor() {
    throw new Bound(NO_PATTERNS);
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

/** A node of JSONata's syntax tree; its kinds differ in more ways than its own types tell. */
export interface SyntaxNode {
  type?: string;
  value?: unknown;
  steps?: SyntaxNode[];
  [part: string]: unknown;
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
