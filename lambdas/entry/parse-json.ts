/** Webhooks and API responses nest far less. Deeper values would exhaust the stack of code that walks them. */
export const JSON_DEPTH_MAX = 64;

/** The message completes a sentence about the text, e.g. `the body …`. It never quotes the text, which may be a secret. */
export class JsonError extends Error {}

/** Parses JSON text that is not trusted. Checks the depth before it parses. */
export function parseJson(text: string): unknown {
  assertDepth(text);
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

/** Parses a stored JSON file without changing any value in it. Returns undefined if the bytes are not UTF-8 or not JSON. */
export function tryParseJsonFile(bytes: Uint8Array): unknown {
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

/** The same for the bytes of a file, without a copy of it as text. */
export function nestsTooDeep(bytes: Uint8Array): boolean {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index];
    if (byte === QUOTE) inString = !inString;
    else if (inString) index += byte === BACKSLASH ? 1 : 0;
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) depth += 1;
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth -= 1;
    if (depth > JSON_DEPTH_MAX) return true;
  }
  return false;
}

/** Counts open brackets, except those inside strings. */
function assertDepth(text: string): void {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (inString) {
      if (character === '\\') index += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '{' || character === '[') {
      depth += 1;
      if (depth > JSON_DEPTH_MAX) throw new JsonError(`nests deeper than ${JSON_DEPTH_MAX} levels`);
    } else if (character === '}' || character === ']') depth -= 1;
  }
}
