import { recordedError } from '../run/errors.ts';
import type { StepOutcome } from './5-executor.ts';

/** Writes are switched off: the claimed write was not sent. */
export const heldBack = (why: string): Extract<StepOutcome, { kind: 'refused' }> => ({
  kind: 'refused',
  error: recordedError('WRITES_DISABLED', why),
  retryable: true,
  neverSent: true,
  heldBy: 'writes.enabled',
});
