import { textDigest } from '../digest.ts';

/** Names of event fields with text of people or external systems: reasons, error messages, names of signals. */
export const SENTENCE_FIELDS: readonly string[] = ['reason', 'message', 'signal'];

/** Events as evidence shows them: each sentence replaced by its digest. Idempotent. */
export function digestSentences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(digestSentences);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      SENTENCE_FIELDS.includes(name) && typeof each === 'string' ? textDigest(each) : digestSentences(each),
    ]),
  );
}
