import type jsonata from 'jsonata';
import { wellFormed } from '../../entry/parse-json.ts';
import { CountersignError } from '../../run/errors.ts';
import type { ExpressionContext } from './expressions.ts';
import { compile, RegexRefused, tooLarge } from './jsonata-syntax.ts';

/** Counted in evaluations, so that the result is deterministic. The process enforces limits of time and memory. */
export const EVALUATIONS_MAX = 100_000;
export const DEPTH_MAX = 200;
export const RESULT_MAX_BYTES = 64 * 1024;
export const LIST_MAX = 10_000;

const ENTRY = Symbol.for('jsonata.__evaluate_entry') as unknown as string;
const EXIT = Symbol.for('jsonata.__evaluate_exit') as unknown as string;

/** Copies the result as JSON with a size limit. The copy has none of JSONata's hidden properties. */
export function plainResult(source: string, result: unknown): { value: unknown; bytes: number } {
  const text = JSON.stringify(result ?? null);
  const bytes = Buffer.byteLength(text);
  if (bytes > RESULT_MAX_BYTES) throw limitExceeded(source, `its result exceeds ${RESULT_MAX_BYTES} bytes`);
  return { value: wellFormed(JSON.parse(text)), bytes };
}

/**
 * Evaluates one expression in this thread. A missing value is `null`, an error is EXPRESSION_FAILED. The limits count
 * evaluations. A single evaluation may still take any time and memory, so tenants' expressions are evaluated in a process
 * that can be ended (expression-pool.ts). `compiled` gives an expression that no other evaluation uses meanwhile.
 */
export async function evaluate(source: string, context: ExpressionContext, nowMs: number, compiled = compile) {
  const large = tooLarge(source);
  if (large !== undefined) throw limitExceeded(source, large);
  try {
    const expression = compiled(source);
    limit(expression, nowMs);
    return plainResult(source, await expression.evaluate(context));
  } catch (error) {
    if (error instanceof CountersignError) throw error;
    if (error instanceof LimitReached) throw limitExceeded(source, error.message);
    if (error instanceof RangeError) throw limitExceeded(source, 'a value is too long, or it nests too deeply');
    throw new CountersignError('EXPRESSION_FAILED', `${shown(source)}: ${reason(error)}`, { cause: error });
  }
}

export const limitExceeded = (source: string, why: string, whatToDo = 'simplify it'): CountersignError =>
  new CountersignError('EXPRESSION_LIMIT_EXCEEDED', `${shown(source)}: ${why}; ${whatToDo}`);

const SHOWN_MAX_CHARACTERS = 200;

function shown(source: string): string {
  const all = source.length <= SHOWN_MAX_CHARACTERS;
  return `{% ${all ? source : `${source.slice(0, SHOWN_MAX_CHARACTERS)}…`} %}`;
}

/** $error and $assert: the expression defines the message. */
const CUSTOM_MESSAGE = ['D3137', 'D3141'];

/** These messages name the argument and no value. */
const ARGUMENT_ERROR = /^T04/;

/** JSONata's message without values: these may be untrusted. */
function reason(error: unknown): string {
  if (error instanceof RegexRefused || error instanceof Unavailable) return error.message;
  const { code, position, message, ...parts } = (error ?? {}) as Record<string, unknown>;
  if (typeof code !== 'string' || typeof message !== 'string') return 'it cannot be evaluated';
  const says = ARGUMENT_ERROR.test(code) ? message : withoutValues(message, parts);
  const said = CUSTOM_MESSAGE.includes(code) ? '$error or $assert ended it' : says;
  return `${said} (JSONata ${code}${typeof position === 'number' ? ` at character ${position}` : ''})`;
}

/** JSONata puts these values into its messages. */
function withoutValues(message: string, { value, value2, exp }: Record<string, unknown>): string {
  const quoted = [value, value2, exp].map((each) => JSON.stringify(each) ?? 'undefined');
  return quoted.reduce((said, each) => said.replaceAll(each, '…'), message);
}

class LimitReached extends Error {}
class Unavailable extends Error {}

function limit(expression: jsonata.Expression, nowMs: number): void {
  let evaluations = 0;
  let depth = 0;
  expression.assign(ENTRY, (_expression: unknown, _input: unknown, environment: { timestamp?: Date }) => {
    // JSONata stores the start time in one object, which `$now` and `$millis` use.
    if (evaluations === 0) environment.timestamp?.setTime(nowMs);
    evaluations += 1;
    depth += 1;
    if (evaluations > EVALUATIONS_MAX) throw new LimitReached(`it takes more than ${EVALUATIONS_MAX} evaluations`);
    if (depth > DEPTH_MAX) throw new LimitReached(`it nests deeper than ${DEPTH_MAX}`);
  });
  expression.assign(EXIT, (_expression: unknown, _input: unknown, _environment: unknown, result: unknown) => {
    depth -= 1;
    const tooLong =
      typeof result === 'string' ? result.length > RESULT_MAX_BYTES : Array.isArray(result) && result.length > LIST_MAX;
    if (tooLong) throw new LimitReached(`a value exceeds ${RESULT_MAX_BYTES} characters or ${LIST_MAX} items`);
  });
  // A single call of these functions can produce a huge text.
  expression.registerFunction('pad', pad, '<s-ns?:s>');
  expression.registerFunction('join', join, '<a<s>s?:s>');
  expression.registerFunction('eval', () => {
    throw new Unavailable(NO_EVAL);
  });
}

export const NO_EVAL = '$eval is not supported; write the expression itself';

function pad(text: string | undefined, width: number, filler?: string): string | undefined {
  if (text === undefined) return undefined;
  if (Math.abs(width) > RESULT_MAX_BYTES) throw new LimitReached(`$pad is limited to ${RESULT_MAX_BYTES} characters`);
  return width < 0 ? text.padStart(-width, filler || ' ') : text.padEnd(width, filler || ' ');
}

function join(texts: string[] | undefined, separator = ''): string | undefined {
  if (texts === undefined) return undefined;
  const characters = texts.reduce((sum, text) => sum + text.length + separator.length, 0);
  if (characters > 2 * RESULT_MAX_BYTES) throw new LimitReached(`$join is limited to ${RESULT_MAX_BYTES} characters`);
  return texts.join(separator);
}
