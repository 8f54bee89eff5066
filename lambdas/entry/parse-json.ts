/** Webhooks and API responses nest far less. Deeper values would exhaust the stack of code that walks them. */
export const JSON_DEPTH_MAX = 64;

/** The message completes a sentence about the text, e.g. `the body …`. It never quotes the text, which may be a secret. */
export class JsonError extends Error {}

/** Parses JSON text that is not trusted. Checks the depth before it parses. */
export function parseJson(text: string): unknown {
  if (tooDeep(text.length, (index) => text.charCodeAt(index)))
    throw new JsonError(`nests deeper than ${JSON_DEPTH_MAX} levels`);
  try {
    return wellFormed(JSON.parse(text));
  } catch {
    throw new JsonError('is not JSON, or contains a number beyond the range of a double');
  }
}

/** Returns undefined where `parseJson` throws. */
export function tryParseJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Parses JSON without changing any value in it. Returns undefined if the bytes are not UTF-8 or not JSON. */
export function tryParseJsonBytes(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

/**
 * Makes a JSON value canonicalizable: replaces lone surrogates, which JSON can escape but UTF-8 cannot encode. Throws
 * for a number beyond the range of a double.
 */
export function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value === 'number' && !Number.isFinite(value)) throw new RangeError('a number is too large');
  if (Array.isArray(value)) return value.map(wellFormed);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key.toWellFormed(), wellFormed(each)]));
}

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [34, 92, 91, 93, 123, 125];

/** For the bytes of a file, without a copy of it as text. */
export const nestsTooDeep = (bytes: Uint8Array): boolean => tooDeep(bytes.length, (index) => bytes[index]);

/** Counts open brackets, except those inside strings. All characters that count are ASCII, so bytes of UTF-8 do as well as characters. */
function tooDeep(length: number, codeAt: (index: number) => number | undefined): boolean {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < length; index += 1) {
    const code = codeAt(index);
    if (code === QUOTE) inString = !inString;
    else if (inString) index += code === BACKSLASH ? 1 : 0;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) depth += 1;
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth -= 1;
    if (depth > JSON_DEPTH_MAX) return true;
  }
  return false;
}
