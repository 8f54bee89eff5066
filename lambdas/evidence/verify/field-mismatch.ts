import { canonicalJson } from '../../run/canonical-json.ts';

/** Long enough to distinguish hashes and ids. */
const VALUE_SHOWN_CHARACTERS = 100;

/** Describes the first field that differs from what the commits record. Fields that are not recorded are not compared. */
export function fieldMismatch(shown: unknown, recorded: unknown, path = ''): string | undefined {
  if (isPlain(recorded) && isPlain(shown)) {
    for (const [name, each] of Object.entries(recorded)) {
      const mismatch = fieldMismatch(shown[name], each, path === '' ? name : `${path}.${name}`);
      if (mismatch !== undefined) return mismatch;
    }
    return undefined;
  }
  if (Array.isArray(recorded) && Array.isArray(shown)) {
    if (recorded.length !== shown.length) {
      return `has ${shown.length} ${path}; its commits have ${recorded.length}`;
    }
    return recorded.reduce<string | undefined>(
      (found, each, index) => found ?? fieldMismatch(shown[index], each, `${path}.${index + 1}`),
      undefined,
    );
  }
  if (shown === recorded || textOf(shown) === textOf(recorded)) return undefined;
  return `says ${path}: ${shortened(shown)}; its commits say ${shortened(recorded)}`;
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const textOf = (value: unknown) => (value === undefined ? 'nothing' : canonicalJson(value));

function shortened(value: unknown): string {
  const text = typeof value === 'string' ? value : textOf(value);
  return text.length > VALUE_SHOWN_CHARACTERS ? `${text.slice(0, VALUE_SHOWN_CHARACTERS)}…` : text;
}
