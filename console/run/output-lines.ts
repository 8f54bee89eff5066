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
    const ended = data.replace(COLORS, '').split('\n');
    const open = ended.pop() ?? '';
    for (const line of ended) {
      this.#add(line);
      this.#isOpen = false;
    }
    if (open === '') return;
    this.#add(open);
    this.#isOpen = true;
  }

  /** A line without a line feed continues with the next part. */
  #add(text: string): void {
    if (this.#isOpen) this.lines[this.lines.length - 1] += text;
    else this.lines.push(text);
  }

  text(): string {
    return `${this.lines.join('\n')}${this.#isOpen ? '' : '\n'}`;
  }

  /** The numbers of the lines that contain the text, in upper or lower case. */
  matches(wanted: string): number[] {
    if (wanted === '') return [];
    const lower = wanted.toLowerCase();
    return this.lines.flatMap((line, index) => (line.toLowerCase().includes(lower) ? [index] : []));
  }
}
