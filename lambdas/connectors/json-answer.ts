import { jsonOf } from '../run/canonical-json.ts';

/** No honest answer nests nearly this deep; what does would exhaust whoever walks it. */
const DEPTH_MAX = 64;

/** JSON whose shape nobody declared, from somebody nobody vouches for: a value that can be walked, hashed and kept. */
export function jsonAnswer(text: string): unknown {
  const value = jsonOf(text);
  return isShallow(value, DEPTH_MAX) ? value : undefined;
}

function isShallow(value: unknown, levels: number): boolean {
  if (value === null || typeof value !== 'object') return true;
  return levels > 0 && Object.values(value).every((each) => isShallow(each, levels - 1));
}
