/** The fields of a secret as texts. */
export const secretFields = (fields: object): Record<string, string> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );

/** The fields of a secret in JSON; another text is the single field `value`. */
export function parsedFields(text: string): Record<string, string> {
  const parsed = jsonObject(text);
  return parsed === undefined || Array.isArray(parsed) ? { value: text } : secretFields(parsed);
}

/** All texts of a value that must be hidden: itself and, if it is JSON like the key file of a service account, each text in it. */
export function secretTexts(value: string): string[] {
  const parsed = jsonObject(value);
  return parsed === undefined ? [value] : [value, ...textsIn(parsed)];
}

const textsIn = (value: unknown): string[] =>
  typeof value === 'object' && value !== null
    ? Object.values(value).flatMap(textsIn)
    : typeof value === 'string' || typeof value === 'number'
      ? [String(value)]
      : [];

/** An object or a list. */
function jsonObject(text: string): object | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? parsed : undefined;
  } catch {
    return undefined;
  }
}
