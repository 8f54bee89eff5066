/** Colors of terminals. They are removed; all other control characters are written out. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is the escape character
const COLORS = /\u001b\[[0-9;]*m/g;

/** The output of a command as lines. Appending 10 MB in parts takes time in proportion to the part. */
export class OutputLines {
  readonly lines: string[] = [];
  #isOpen = false;
  bytes = 0;

  append(data: string): void {
    this.bytes += data.length;
    const [first = '', ...rest] = data.replace(COLORS, '').split('\n');
    if (this.#isOpen) this.lines[this.lines.length - 1] += first;
    else this.lines.push(first);
    for (const line of rest) this.lines.push(line);
    // A line that is not finished continues with the next part; after a line feed there is an empty one.
    this.#isOpen = true;
  }

  text(): string {
    return this.lines.join('\n');
  }

  /** The numbers of the lines that contain the text, in upper or lower case. */
  matches(wanted: string): number[] {
    if (wanted === '') return [];
    const lower = wanted.toLowerCase();
    return this.lines.flatMap((line, index) => (line.toLowerCase().includes(lower) ? [index] : []));
  }
}
