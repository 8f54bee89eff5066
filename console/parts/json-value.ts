/** The JSON value in a field of a form. Throws a sentence that names the field. */
export function jsonIn(label: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${label}: this is not JSON; write for example {"number": 7}, ["a", "b"] or "text"`);
  }
}

/** The JSON object in a field; undefined if the field is empty. */
export function objectIn(label: string, text: string): Record<string, never> | undefined {
  if (text.trim() === '') return undefined;
  const value = jsonIn(label, text);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, never>;
  throw new Error(`${label}: write a JSON object, for example {"service": "payments"}`);
}
