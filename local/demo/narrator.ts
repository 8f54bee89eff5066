import { isDeepStrictEqual, styleText } from 'node:util';

/** A claim of the demo is not true. */
export class ClaimFailed extends Error {
  readonly expected: unknown;
  readonly seen: unknown;

  constructor(claim: string, expected: unknown, seen: unknown) {
    super(claim);
    this.expected = expected;
    this.seen = seen;
  }
}

/** Prints the demo. It checks every claim before it prints it, and the first claim that is not true ends the demo. */
export class Narrator {
  #chapters = 0;
  #held = 0;

  get claimsHeld(): number {
    return this.#held;
  }

  chapter(title: string): void {
    this.#chapters += 1;
    console.log(`\n${styleText('bold', `${this.#chapters}  ${title}`)}`);
  }

  says(text: string): void {
    console.log(`   ${text}`);
  }

  /** A command that a person types. */
  types(command: string): void {
    console.log(`   ${styleText('cyan', `$ ${command}`)}`);
  }

  shows(text: string): void {
    console.log(text === '' ? '' : styleText('dim', `     ${text}`));
  }

  claim(claim: string, seen: unknown, expected: unknown = true): void {
    if (!isDeepStrictEqual(seen, expected)) throw new ClaimFailed(claim, expected, seen);
    this.#held += 1;
    console.log(`   ${styleText('green', '✓')} ${claim}`);
  }

  failed({ message, expected, seen }: ClaimFailed): void {
    console.log(`   ${styleText('red', '✗')} ${message}`);
    console.log(`     expected  ${JSON.stringify(expected)}`);
    console.log(`     seen      ${JSON.stringify(seen)}`);
  }
}
