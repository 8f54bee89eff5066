/** The exit codes of every command. */
export const EXIT = {
  ok: 0,
  /** The command worked, but its result is negative: the run failed, the run does not exist, you lack the right. */
  failed: 1,
  usage: 2,
  /** The API does not respond, or it rejects the API key. */
  refused: 3,
  /** Of `evidence verify`, which calls no API: the bundle is intact, but the run broke a rule. */
  rulesBroken: 3,
  /** A bug in this program (EX_SOFTWARE in sysexits.h). It says nothing about the result. */
  broken: 70,
  /** Ended by Ctrl-C, as shells report it. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends the command with a message for the person and an exit code for scripts. */
export class Failure extends Error {
  readonly exitCode: ExitCode;
  constructor(exitCode: ExitCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** A person ended the input (Ctrl-D) at a question. Commands ask before they act. */
export class InputEnded extends Failure {
  constructor() {
    super(EXIT.interrupted, 'the input ended; nothing was changed');
  }
}

/** Wrong usage: the usage line is printed before the message. */
export class UsageError extends Failure {
  constructor(message: string) {
    super(EXIT.usage, message);
  }
}
