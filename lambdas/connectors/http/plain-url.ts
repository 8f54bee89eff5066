import * as z from 'zod';

const URL_MAX_CHARACTERS = 2_000;
/** Scheme and authority as they are written, before anybody's parser has smoothed them. */
const WRITTEN = /^(https?):\/\/([a-z0-9.:[\]-]+)(?=[/?]|$)[!-~]*$/;
/** Servers decode once, proxies in front of them once more. What is still encoded after this many times is no escape. */
const DECODED_TIMES_MAX = 5;
const NOT_UTF8 = '\ufffd';

/**
 * An address spelled the one plain way. Parsers agree on nothing else: a host in decimal, octal or hexadecimal, with
 * escapes, wide digits, a user in front or a backslash behind is one thing to one of them and another to the next. It is
 * given as it will be requested, letter for letter.
 */
export const PlainUrl = z
  .string()
  .max(URL_MAX_CHARACTERS)
  .refine(isPlain, 'write it plainly: https://, the host in lower case as it is allowed, no user, no other spelling')
  .refine((text) => !text.includes('#'), 'remove "#" and what follows it: it is never sent')
  .refine(
    (text) => !leavesItsPath(text),
    'a path may not have "." or ".." as a segment, in any encoding; write the path out',
  )
  .transform((text) => new URL(text).href);

function isPlain(text: string): boolean {
  const [, scheme, authority] = WRITTEN.exec(text.replace(/#.*$/, '')) ?? [];
  if (!scheme || !authority || text.includes('\\') || !URL.canParse(text)) return false;
  const { hostname, port } = new URL(text);
  const usual = scheme === 'https' ? '443' : '80';
  return authority === (port ? `${hostname}:${port}` : hostname) || authority === `${hostname}:${usual}`;
}

/** Whether any reader of the path would take a part of it for "here" or "one up"; also if a reader cannot tell. */
function leavesItsPath(text: string): boolean {
  const path = /^[a-z]+:\/\/[^/?]*([^?]*)/.exec(text)?.[1] ?? '';
  const decoded = fullyDecoded(path);
  return decoded.includes(NOT_UTF8) || decoded.split(/[/\\]/).some(isDots);
}

/** Of `..;a`, some servers read only what stands before the semicolon. */
const isDots = (segment: string): boolean => /^\.+$/.test(segment.split(';')[0] ?? '');

/** As the most generous server would read it: decoded again and again, wide letters made plain, what shows nothing left out. */
function fullyDecoded(text: string): string {
  let decoded = text;
  for (let times = 0; times < DECODED_TIMES_MAX && decoded.includes('%'); times += 1) decoded = onceDecoded(decoded);
  return decoded.normalize('NFKC').replace(/[\p{C}\s]/gu, '');
}

function onceDecoded(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => Buffer.from(escapes.replaceAll('%', ''), 'hex').toString());
}

/** What an expression gave for a place in a URL, so that it stays there; or why it cannot. */
export function asUrlData(value: unknown, place: 'path' | 'query'): { encoded: string } | { flaw: string } {
  if (value !== null && typeof value === 'object') return { flaw: 'gave a list or an object; make a text of it' };
  const text = String(value ?? '').toWellFormed();
  if (place === 'query') return { encoded: encodeURIComponent(text) };
  if (text === '') return { flaw: 'gave nothing, which would make it another path' };
  // Servers differ in whether an encoded slash divides a path.
  if (/[/\\]/.test(fullyDecoded(text))) {
    return { flaw: 'gave "/" or "\\" for a path; give each segment by an expression of its own' };
  }
  return { encoded: encodeURIComponent(text) };
}
