import { textDigest } from '../digest.ts';

/** Names of event fields with text of people or external systems: reasons, error messages, names of signals. */
export const SENTENCE_FIELDS: readonly string[] = ['reason', 'message', 'signal'];

/** Events as evidence shows them: each sentence replaced by its digest. Idempotent. A part without sentences is not copied. */
export function digestSentences(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value;
  let isChanged = false;
  const digested = (name: string, each: unknown) => {
    const shown = SENTENCE_FIELDS.includes(name) && typeof each === 'string' ? textDigest(each) : digestSentences(each);
    isChanged ||= shown !== each;
    return shown;
  };
  if (Array.isArray(value)) {
    const items = value.map((item) => digested('', item));
    return isChanged ? items : value;
  }
  const fields = Object.entries(value).map(([name, each]) => [name, digested(name, each)] as const);
  return isChanged ? Object.fromEntries(fields) : value;
}
