import { textDigest } from './digest.ts';

/** Under these names events carry texts: of people, of errors that may quote what people wrote, names of signals. */
const TEXTS: ReadonlySet<string> = new Set(['reason', 'message', 'signal']);

/** Events as evidence shows them: each text as its digest. Applied again it changes nothing. */
export function withoutText(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutText);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      TEXTS.has(name) && typeof each === 'string' ? textDigest(each) : withoutText(each),
    ]),
  );
}
