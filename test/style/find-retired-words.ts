import { ALLOWED, RETIRED_WORDS } from './retired-words.ts';

const JAVASCRIPT_PROMISE =
  /\bPromise(Like|Constructor|WithResolvers|(Settled|Fulfilled|Rejected)Result)?\b|\.promise\b|\/promises['"]|\bpromise(?=(: \w+)?, (resolve|reject)\b)|(\breturn|\bawait|=>|\bconst) promise\b/g;
const COMMENT_MARKER = /^\s*(\/\*\*?|\*\/?|\/\/|#+|>|-)\s+/;

export interface Violation {
  path: string;
  line: number;
  word: string;
  write: string;
}

/** Finds retired words in a file's path (line 0) and text, also where a phrase continues on the next line. */
export function violationsIn(path: string, text: string): Violation[] {
  const lines = [path, ...text.split('\n').map((line) => line.replace(COMMENT_MARKER, '').trim())];
  const allowed = ALLOWED.filter((each) => path.startsWith(each.in)).map((each) => each.text);
  const checked = lines.map((line) =>
    splitIdentifiers(allowed.reduce((rest, each) => rest.replace(each, ''), line).replace(JAVASCRIPT_PROMISE, '')),
  );
  const starts = [0];
  for (const line of checked) starts.push((starts.at(-1) ?? 0) + line.length + 1);
  const joined = checked.join(' ').toLowerCase();
  return RETIRED_WORDS.flatMap(({ pattern, write }) =>
    [...joined.matchAll(pattern)].map(({ index, 0: word }) => ({
      path,
      line: starts.findLastIndex((start) => start <= index),
      word,
      write,
    })),
  );
}

function splitIdentifiers(text: string): string {
  return text.replace(/([a-z0-9])([A-Z])/g, '$1 $2').replace(/[-_/]/g, ' ');
}
