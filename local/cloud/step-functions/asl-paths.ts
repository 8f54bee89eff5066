/**
 * The JSONPath side of the Amazon States Language: reference paths, payload templates and intrinsic functions.
 * Paths that can select several values (wildcards, filters, slices) and intrinsics that are not the same each time
 * (UUID, random) are refused when a definition is loaded, not when an approval already waits.
 */
import { type Fields, isFields } from '../request-fields.ts';

/** An error with a name that Retry and Catch can match. */
export class StateError extends Error {
  readonly error: string;
  readonly causeText: string;
  constructor(error: string, causeText: string) {
    super(`${error}: ${causeText}`);
    this.error = error;
    this.causeText = causeText;
  }
}

/** What paths are resolved against: `$` is the state's data, `$$` its context object. */
export interface PathScope {
  data: unknown;
  context: Fields;
}

interface Path {
  root: '$' | '$$';
  parts: (string | number)[];
}

export function parsePath(text: string): Path {
  const [, root, rest = ''] = /^(\$\$?)(.*)$/s.exec(text) ?? [];
  if (root !== '$' && root !== '$$') throw new Error(`not a path: ${text}`);
  const step = /\.([^.[\]()*?@$\s'",:]+)|\['([^']*)'\]|\[(\d+)\]/y;
  const parts: (string | number)[] = [];
  while (step.lastIndex < rest.length) {
    const match = step.exec(rest);
    if (match === null) throw new Error(`not a reference path (one value, no wildcard, filter or slice): ${text}`);
    parts.push(match[3] === undefined ? (match[1] ?? match[2] ?? '') : Number(match[3]));
  }
  return { root, parts };
}

/** The value at a path, or undefined where nothing is. */
export function lookUp(text: string, scope: PathScope): unknown {
  const { root, parts } = parsePath(text);
  let value: unknown = root === '$' ? scope.data : scope.context;
  for (const part of parts) {
    if (Array.isArray(value) && typeof part === 'number') value = value[part];
    else if (isFields(value) && Object.hasOwn(value, part)) value = value[part];
    else return undefined;
  }
  return value;
}

export function lookUpRequired(text: string, scope: PathScope, error = 'States.Runtime'): unknown {
  const value = lookUp(text, scope);
  if (value === undefined) throw new StateError(error, `The JSONPath '${text}' could not be found in the input.`);
  return value;
}

/** `InputPath` and `OutputPath`: absent means everything, null means nothing. */
export function applyPath(path: unknown, scope: PathScope): unknown {
  if (path === undefined) return scope.data;
  if (path === null) return {};
  return lookUpRequired(String(path), scope);
}

/** `ResultPath`: where a result goes inside the state's input. */
export function placeResult(path: unknown, input: unknown, result: unknown): unknown {
  if (path === undefined || path === '$') return result;
  if (path === null) return input;
  const { parts } = parsePath(String(path));
  const output: unknown = structuredClone(isFields(input) ? input : {});
  let at = output as Fields;
  for (const [index, part] of parts.entries()) {
    if (typeof part === 'number') {
      throw new StateError('States.ResultPathMatchFailure', `ResultPath '${path}' points into a list.`);
    }
    if (index === parts.length - 1) setOwn(at, part, result);
    else {
      const inner = Object.hasOwn(at, part) && isFields(at[part]) ? at[part] : {};
      setOwn(at, part, inner);
      at = inner;
    }
  }
  return output;
}

/** Plain assignment would reach the prototype for the key `__proto__`. */
function setOwn(target: Fields, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true });
}

/** `Parameters`, `ResultSelector`: a key that ends in `.$` takes its value from a path or an intrinsic function. */
export function fillTemplate(template: unknown, scope: PathScope): unknown {
  if (Array.isArray(template)) return template.map((entry) => fillTemplate(entry, scope));
  if (!isFields(template)) return template;
  const entries = Object.entries(template).map(([key, value]) =>
    key.endsWith('.$') ? [key.slice(0, -2), evaluate(String(value), scope)] : [key, fillTemplate(value, scope)],
  );
  return Object.fromEntries(entries);
}

function evaluate(expression: string, scope: PathScope): unknown {
  if (expression.startsWith('$')) return lookUpRequired(expression, scope, 'States.ParameterPathFailure');
  return evaluateIntrinsic(parseIntrinsic(expression), scope);
}

type Argument = { path: string } | { value: unknown } | Intrinsic;
interface Intrinsic {
  name: string;
  args: Argument[];
}

const INTRINSICS: Record<string, (args: unknown[]) => unknown> = {
  'States.Array': (args) => args,
  'States.Format': ([template, ...values]) => {
    const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
    let next = 0;
    return String(template).replace(/\{\}/g, () => text(values[next++]) ?? '');
  },
  'States.JsonToString': ([value]) => JSON.stringify(value),
  'States.StringToJson': ([text]) => JSON.parse(String(text)),
  'States.MathAdd': ([a, b]) => Number(a) + Number(b),
};

/** Throws for anything the local host does not evaluate. */
export function parseIntrinsic(expression: string): Intrinsic {
  const token = /\s*(?:(States\.\w+)\(|'((?:[^'\\]|\\.)*)'|(-?\d+(?:\.\d+)?|true|false|null)|(\$[^,)\s]*)|([,)]))/y;
  const fail = () => new Error(`the intrinsic function is not understood: ${expression}`);
  const next = () => token.exec(expression) ?? undefined;
  const parseCall = (name: string): Intrinsic => {
    if (!Object.hasOwn(INTRINSICS, name)) throw new Error(`the local host does not evaluate ${name}: ${expression}`);
    const args: Argument[] = [];
    for (;;) {
      const match = next();
      if (match === undefined) throw fail();
      const [, call, quoted, literal, path, mark] = match;
      if (mark === ')') return { name, args };
      if (mark === ',') continue;
      if (call !== undefined) args.push(parseCall(call));
      else if (quoted !== undefined) args.push({ value: quoted.replace(/\\(.)/g, '$1') });
      else if (literal !== undefined) args.push({ value: JSON.parse(literal) });
      else if (path !== undefined) {
        parsePath(path);
        args.push({ path });
      }
    }
  };
  const start = next()?.[1];
  if (start === undefined) throw fail();
  const call = parseCall(start);
  if (expression.slice(token.lastIndex).trim() !== '') throw fail();
  return call;
}

function evaluateIntrinsic({ name, args }: Intrinsic, scope: PathScope): unknown {
  const values = args.map((arg) => {
    if ('value' in arg) return arg.value;
    if ('path' in arg) return lookUpRequired(arg.path, scope, 'States.ParameterPathFailure');
    return evaluateIntrinsic(arg, scope);
  });
  try {
    return INTRINSICS[name]?.(values);
  } catch (error) {
    throw new StateError('States.IntrinsicFailure', `${name}: ${error instanceof Error ? error.message : error}`);
  }
}
