import { textDigest } from '../digest.ts';

/** Names of event fields with text of people or external systems: reasons, error messages, names of signals. */
export const SENTENCE_FIELDS: readonly string[] = ['reason', 'message', 'signal'];

/** Events as evidence shows them: each sentence replaced by its digest. Idempotent. Returns the value itself if it has none. */
export function digestSentences(value: unknown): unknown {
  return hasSentence(value) ? withDigests(value) : value;
}

function hasSentence(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return false;
  if (Array.isArray(value)) return value.some(hasSentence);
  for (const [name, each] of Object.entries(value)) if (isSentence(name, each) || hasSentence(each)) return true;
  return false;
}

function withDigests(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withDigests);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, isSentence(name, each) ? textDigest(each) : withDigests(each)]),
  );
}

const isSentence = (name: string, value: unknown): value is string =>
  typeof value === 'string' && SENTENCE_FIELDS.includes(name);
