/** The fields of a secret as texts. */
export const secretFields = (fields: object): Record<string, string> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );

/** The fields of a secret in JSON; another text is the single field `value`. */
export function parsedFields(text: string): Record<string, string> {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return secretFields(parsed);
  } catch {
    // Not JSON.
  }
  return { value: text };
}
