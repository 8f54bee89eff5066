/** Longer names are compared by their beginning, so that a long name costs no time. */
const COMPARED_CHARACTERS = 60;

/** The known name that a misspelled one was probably meant to be, if any is close. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const [best] = known
    .map((each) => ({
      each,
      edits: editDistance(name.slice(0, COMPARED_CHARACTERS).toLowerCase(), each.toLowerCase()),
    }))
    .sort((a, b) => a.edits - b.edits);
  return best && best.edits <= Math.max(1, Math.floor(best.each.length / 3)) ? best.each : undefined;
}

/** How many letters have to be inserted, removed or replaced (Levenshtein). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (letter === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
