import { canonicalJson } from '../../run/canonical-json.ts';
import { isRecord } from '../../run/events/replay-state.ts';

/** Long enough to distinguish hashes and ids. */
const VALUE_SHOWN_CHARACTERS = 100;

/** Describes the first field that differs from what the commits record. Fields that are not recorded are not compared. */
export function fieldMismatch(shown: unknown, recorded: unknown, path = ''): string | undefined {
  if (isPlain(recorded) && isPlain(shown)) {
    for (const name in recorded) {
      const mismatch = fieldMismatch(shown[name], recorded[name], path === '' ? name : `${path}.${name}`);
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

/** Whether two JSON values have the same canonical form. A member that is undefined is absent. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (!isRecord(a) || !isRecord(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  let more = 0;
  for (const name in a) {
    if (a[name] === undefined) continue;
    if (!Object.hasOwn(b, name) || !sameJson(a[name], b[name])) return false;
    more += 1;
  }
  for (const name in b) if (b[name] !== undefined) more -= 1;
  return more === 0;
}

const isPlain = (value: unknown): value is Record<string, unknown> => isRecord(value) && !Array.isArray(value);

const textOf = (value: unknown) => (value === undefined ? 'nothing' : canonicalJson(value));

function shortened(value: unknown): string {
  const text = typeof value === 'string' ? value : textOf(value);
  return text.length > VALUE_SHOWN_CHARACTERS ? `${text.slice(0, VALUE_SHOWN_CHARACTERS)}…` : text;
}
