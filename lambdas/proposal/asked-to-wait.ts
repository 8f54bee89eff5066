import { CountersignError, type ErrorCode } from '../run/errors.ts';
import { later } from '../run/lease.ts';
import { ASKS_AGAIN_AFTER_MS, type FlagName } from '../run/settings/flags.ts';

/** The call cannot be proposed now, and it is known when to try again: the step waits, which is not an attempt. */
export class AskedToWait extends CountersignError {
  readonly notBefore: string;
  /** The step waits until this flag is on. */
  readonly flag?: FlagName;

  constructor(code: ErrorCode, why: string, notBefore: string, flag?: FlagName) {
    super(code, why);
    this.notBefore = notBefore;
    if (flag !== undefined) this.flag = flag;
  }
}

export const askedToWaitForFlag = (code: ErrorCode, why: string, flag: FlagName, at: string): AskedToWait =>
  new AskedToWait(code, why, later(at, ASKS_AGAIN_AFTER_MS), flag);
