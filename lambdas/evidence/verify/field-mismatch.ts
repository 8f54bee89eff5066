import { canonicalJson } from '../../run/canonical-json.ts';

/** Long enough to tell hashes and ids apart. */
const VALUE_SHOWN_CHARACTERS = 100;

/** The first thing that is shown otherwise than it is told, in words. Of objects only what is told is compared. */
export function fieldMismatch(shown: unknown, told: unknown, path = ''): string | undefined {
  if (isPlain(told) && isPlain(shown)) {
    for (const [name, each] of Object.entries(told)) {
      const difference = fieldMismatch(shown[name], each, path === '' ? name : `${path}.${name}`);
      if (difference !== undefined) return difference;
    }
    return undefined;
  }
  if (Array.isArray(told) && Array.isArray(shown)) {
    if (told.length !== shown.length) return `has ${shown.length} ${path}; its commits tell of ${told.length}`;
    return told.reduce<string | undefined>(
      (found, each, index) => found ?? fieldMismatch(shown[index], each, `${path}.${index + 1}`),
      undefined,
    );
  }
  if (textOf(shown) === textOf(told)) return undefined;
  return `says ${path}: ${shortened(shown)}; its commits say ${shortened(told)}`;
}

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const textOf = (value: unknown) => (value === undefined ? 'nothing' : canonicalJson(value));

function shortened(value: unknown): string {
  const text = typeof value === 'string' ? value : textOf(value);
  return text.length > VALUE_SHOWN_CHARACTERS ? `${text.slice(0, VALUE_SHOWN_CHARACTERS)}…` : text;
}
