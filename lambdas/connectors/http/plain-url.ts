import * as z from 'zod';

const URL_MAX_CHARACTERS = 2_000;
/** Scheme and authority as written, before any parser normalizes them. */
const WRITTEN = /^(https?):\/\/([a-z0-9.:[\]-]+)(?=[/?]|$)[!-~]*$/;
/** Servers decode a path once, and each proxy may decode it again. */
const DECODED_TIMES_MAX = 5;
const NOT_UTF8 = '\ufffd';

/**
 * A URL in its canonical form. Parsers disagree about other forms: a host in decimal, octal or hexadecimal, with escapes
 * or full-width digits, a user before it or a backslash after it. The parsed value is exactly the requested URL.
 */
export const PlainUrl = z.lazy(() =>
  z
    .string()
    .max(URL_MAX_CHARACTERS)
    .refine(isPlain, 'write https:// and the host in lower case, as in allowedHosts, without a user or escapes')
    .refine((text) => !text.includes('#'), 'remove "#" and the text after it: it is never sent')
    .refine(
      (text) => !leavesItsPath(text),
      'a path may not have "." or ".." as a segment, in any encoding; write the full path',
    )
    .transform((text) => new URL(text).href),
);

function isPlain(text: string): boolean {
  const [, scheme, authority] = WRITTEN.exec(text.replace(/#.*$/, '')) ?? [];
  if (!scheme || !authority || text.includes('\\') || !URL.canParse(text)) return false;
  const { hostname, port } = new URL(text);
  const defaultPort = scheme === 'https' ? '443' : '80';
  return authority === (port ? `${hostname}:${port}` : hostname) || authority === `${hostname}:${defaultPort}`;
}

/** Whether any server could read a segment as "." or "..", or could not decode the path. */
function leavesItsPath(text: string): boolean {
  const path = /^[a-z]+:\/\/[^/?]*([^?]*)/.exec(text)?.[1] ?? '';
  const decoded = fullyDecoded(path);
  return decoded.includes(NOT_UTF8) || decoded.split(/[/\\]/).some(isDots);
}

/** Some servers ignore the semicolon and the text after it in `..;a`. */
const isDots = (segment: string): boolean => /^\.+$/.test(segment.split(';')[0] ?? '');

/** Decodes like the most lenient server: repeatedly, with full-width letters normalized and invisible characters removed. */
function fullyDecoded(text: string): string {
  let decoded = text;
  for (let times = 0; times < DECODED_TIMES_MAX && decoded.includes('%'); times += 1) decoded = onceDecoded(decoded);
  return decoded.normalize('NFKC').replace(/[\p{C}\s]/gu, '');
}

function onceDecoded(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => Buffer.from(escapes.replaceAll('%', ''), 'hex').toString());
}

/** Encodes the value of an expression so that it stays in its path segment or query value, or says why it cannot. */
export function encodeUrlValue(value: unknown, place: 'path' | 'query'): { encoded: string } | { problem: string } {
  if (value !== null && typeof value === 'object') return { problem: 'gave a list or an object; convert it to text' };
  const text = String(value ?? '').toWellFormed();
  if (place === 'query') return { encoded: encodeURIComponent(text) };
  if (text === '') return { problem: 'gave an empty value, which would change the path' };
  // Some servers treat an encoded slash as a separator.
  if (/[/\\]/.test(fullyDecoded(text))) {
    return { problem: 'gave "/" or "\\" for a path; use one expression per segment' };
  }
  return { encoded: encodeURIComponent(text) };
}
