/** A shorter name is the start of too many others. */
const PREFIX_MIN_CHARACTERS = 4;
/** Longer names are not typing mistakes, and comparing them takes time. */
const NAME_MAX_CHARACTERS = 64;

/** `; did you mean "needs"?`, or nothing if no known name is close. */
export function didYouMean(name: string, known: readonly string[], show = (each: string) => `"${each}"`): string {
  if (name.length > NAME_MAX_CHARACTERS) return '';
  const max = Math.min(Math.ceil(name.length / 3), name.length - 1);
  const [closest] = known
    .filter((each) => Math.abs(each.length - name.length) <= max)
    .map((each) => ({ each, distance: editDistance(name, each) }))
    .filter(({ distance }) => distance <= max)
    .sort((a, b) => a.distance - b.distance);
  const completed = name.length >= PREFIX_MIN_CHARACTERS ? known.find((each) => each.startsWith(name)) : undefined;
  const close = closest?.each ?? completed;
  return close === undefined ? '' : `; did you mean ${show(close)}?`;
}

/** For an error about an unknown name: the close one, or else the command that lists all, such as `agents list`. */
export const closeNameOr = (command: string, name: string, known: readonly string[]): string =>
  didYouMean(name, known) || `; countersign ${command} shows all`;

/** The names in the order of their distance, ignoring case. */
export function closestNames(name: string, known: readonly string[]): string[] {
  const wanted = name.toLowerCase();
  return known
    .map((each) => ({ each, distance: editDistance(wanted, each.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)
    .map(({ each }) => each);
}

/** How many characters to insert, delete or replace, or neighbors to swap. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  let rowBefore: number[] = [];
  for (let index = 0; index < a.length; index += 1) {
    const next = [index + 1];
    for (let column = 1; column <= b.length; column += 1) {
      const replaced = (row[column - 1] ?? 0) + (b[column - 1] === a[index] ? 0 : 1);
      const isSwap = column > 1 && a[index] === b[column - 2] && a[index - 1] === b[column - 1];
      const swapped = isSwap ? (rowBefore[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      next.push(Math.min(replaced, swapped, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1));
    }
    [rowBefore, row] = [row, next];
  }
  return row.at(-1) ?? 0;
}
