import type jsonata from 'jsonata';
import { wellFormed } from '../../entry/parse-json.ts';
import { CountersignError } from '../../run/errors.ts';
import type { ExpressionContext } from './expressions.ts';
import { compile, PatternRefused, tooLarge } from './jsonata-syntax.ts';

/** Counted in evaluations, not milliseconds: what reaches them always ends the same way. The process ends the rest. */
const EVALUATIONS_MAX = 100_000;
const DEPTH_MAX = 200;
export const RESULT_MAX_BYTES = 64 * 1024;
const LIST_MAX = 10_000;

const ENTRY = Symbol.for('jsonata.__evaluate_entry') as unknown as string;
const EXIT = Symbol.for('jsonata.__evaluate_exit') as unknown as string;

/** What an expression gave, as JSON of a bounded size; JSONata marks its sequences with hidden properties, a copy has none. */
export function plainResult(source: string, result: unknown): { value: unknown; bytes: number } {
  const text = JSON.stringify(result ?? null);
  const bytes = Buffer.byteLength(text);
  if (bytes > RESULT_MAX_BYTES) throw limitExceeded(source, `its result exceeds ${RESULT_MAX_BYTES} bytes`);
  return { value: wellFormed(JSON.parse(text)), bytes };
}

/**
 * Evaluates one expression in this thread. What it finds missing is `null`, what it breaks is EXPRESSION_FAILED. The limits
 * here count evaluations and end most of what takes too long; one evaluation may still take any time and memory, so
 * that expressions of a tenant are evaluated in a process that can be ended (expression-pool.ts).
 */
export async function evaluate(source: string, context: ExpressionContext, nowMs: number) {
  const large = tooLarge(source);
  if (large !== undefined) throw limitExceeded(source, large);
  try {
    const expression = compile(source);
    bound(expression, nowMs);
    return plainResult(source, await expression.evaluate(context));
  } catch (error) {
    if (error instanceof CountersignError) throw error;
    if (error instanceof Bound) throw limitExceeded(source, error.message);
    if (error instanceof RangeError) throw limitExceeded(source, 'a value in it is too long, or it nests too deep');
    throw new CountersignError('EXPRESSION_FAILED', `${shown(source)}: ${reason(error)}`, { cause: error });
  }
}

export const limitExceeded = (source: string, why: string): CountersignError =>
  new CountersignError('EXPRESSION_LIMIT_EXCEEDED', `${shown(source)}: ${why}; make it do less`);

/** Enough to find it by. */
const SHOWN_MAX_CHARACTERS = 200;

function shown(source: string): string {
  const all = source.length <= SHOWN_MAX_CHARACTERS;
  return `{% ${all ? source : `${source.slice(0, SHOWN_MAX_CHARACTERS)}…`} %}`;
}

/** Of these the sentence is whatever the expression made it. */
const SAYS_ITSELF = ['D3137', 'D3141'];

/** Of these it tells which argument is meant, and no value. */
const OF_ARGUMENTS = /^T04/;

/** JSONata's own sentence, without the values it stumbled over: those may be anybody's text. */
function reason(error: unknown): string {
  if (error instanceof PatternRefused || error instanceof Unavailable) return error.message;
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
class Unavailable extends Error {}

function bound(expression: jsonata.Expression, nowMs: number): void {
  let evaluations = 0;
  let depth = 0;
  expression.assign(ENTRY, (_expression: unknown, _input: unknown, environment: { timestamp?: Date }) => {
    // JSONata notes the time when it begins; all of `$now` and `$millis` is that one object.
    if (evaluations === 0) environment.timestamp?.setTime(nowMs);
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
  // The functions that can make a huge text of small values in a single evaluation.
  expression.registerFunction('pad', pad, '<s-ns?:s>');
  expression.registerFunction('join', join, '<a<s>s?:s>');
  expression.registerFunction('eval', () => {
    throw new Unavailable(NO_EVAL);
  });
}

export const NO_EVAL = '$eval is not available; write the expression itself';

function pad(text: string | undefined, width: number, filler?: string): string | undefined {
  if (text === undefined) return undefined;
  if (Math.abs(width) > RESULT_MAX_BYTES) throw new Bound(`$pad is limited to ${RESULT_MAX_BYTES} characters`);
  return width < 0 ? text.padStart(-width, filler || ' ') : text.padEnd(width, filler || ' ');
}

function join(texts: string[] | undefined, separator = ''): string | undefined {
  if (texts === undefined) return undefined;
  const characters = texts.reduce((sum, text) => sum + text.length + separator.length, 0);
  if (characters > 2 * RESULT_MAX_BYTES) throw new Bound(`$join is limited to ${RESULT_MAX_BYTES} characters`);
  return texts.join(separator);
}
