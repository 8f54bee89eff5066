/** What a script learns from the exit code. */
export const EXIT = {
  ok: 0,
  /** The command worked, but what it is about did not: the run failed, there is no such run, you may not do that. */
  failed: 1,
  usage: 2,
  /** Nobody answers, or the key is not taken. */
  refused: 3,
  /** A fault of this program, which says nothing about what it was asked. As sysexits.h has it for software. */
  broken: 70,
  /** As a shell reports a program ended by Ctrl-C. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends the command with a sentence for the person and a code for the script. */
export class Failure extends Error {
  readonly exitCode: ExitCode;
  constructor(exitCode: ExitCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** The command was called wrongly; the usage is shown with the sentence. */
export class UsageError extends Failure {
  constructor(message: string) {
    super(EXIT.usage, message);
  }
}
