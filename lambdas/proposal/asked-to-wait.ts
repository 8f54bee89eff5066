import { CountersignError, type ErrorCode } from '../run/errors.ts';

/** The call cannot be proposed now, and it is known when to try again: the step waits, which is not an attempt. */
export class AskedToWait extends CountersignError {
  readonly notBefore: string;

  constructor(code: ErrorCode, why: string, notBefore: string) {
    super(code, why);
    this.notBefore = notBefore;
  }
}
