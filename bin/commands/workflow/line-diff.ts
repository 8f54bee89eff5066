/** Unchanged lines that are shown around a change. */
const CONTEXT_LINES = 2;

/** The lines that differ, with `-` and `+`, and a few lines around them. Empty if the texts are the same. */
export function lineDiff(from: string, to: string): string[] {
  const [before, after] = [from.split('\n'), to.split('\n')];
  const marked = merged(before, after);
  const changed = marked.flatMap((line, index) => (line.startsWith(' ') ? [] : [index]));
  const isNear = (index: number) => changed.some((other) => Math.abs(other - index) <= CONTEXT_LINES);
  return marked.flatMap((line, index) =>
    isNear(index) ? [line] : isNear(index - 1) && index < marked.length - 1 ? ['…'] : [],
  );
}

/** All lines in order, by the longest common subsequence. */
function merged(before: readonly string[], after: readonly string[]): string[] {
  const lengths = Array.from({ length: before.length + 1 }, () => new Uint32Array(after.length + 1));
  const length = (row: number, column: number) => lengths[row]?.[column] ?? 0;
  for (let row = before.length - 1; row >= 0; row -= 1) {
    for (let column = after.length - 1; column >= 0; column -= 1) {
      const same = before[row] === after[column];
      const best = same ? length(row + 1, column + 1) + 1 : Math.max(length(row + 1, column), length(row, column + 1));
      (lengths[row] as Uint32Array)[column] = best;
    }
  }
  const lines: string[] = [];
  let [row, column] = [0, 0];
  while (row < before.length || column < after.length) {
    if (row < before.length && column < after.length && before[row] === after[column]) {
      lines.push(`  ${before[row]}`);
      row += 1;
      column += 1;
    } else if (row < before.length && (column === after.length || length(row + 1, column) >= length(row, column + 1))) {
      lines.push(`- ${before[row]}`);
      row += 1;
    } else {
      lines.push(`+ ${after[column]}`);
      column += 1;
    }
  }
  return lines;
}
