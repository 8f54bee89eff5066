import { Problem } from '../entry/http.ts';

/** No webhook nests nearly this deep; what does is meant to exhaust whoever walks it. */
export const JSON_DEPTH_MAX = 64;

/** Checks nesting on the text, before it is parsed: brackets inside strings do not count. */
export function assertShallow(text: string): void {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (inString) {
      if (character === '\\') index += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '{' || character === '[') {
      depth += 1;
      if (depth > JSON_DEPTH_MAX) throw new Problem(400, 'BAD_REQUEST', `the body nests deeper than ${JSON_DEPTH_MAX}`);
    } else if (character === '}' || character === ']') depth -= 1;
  }
}
