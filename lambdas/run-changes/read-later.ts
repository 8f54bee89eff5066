import type { Clock } from '../entry/ports.ts';
import { callableFrom, type Unreadable } from '../proposal/read-target.ts';
import { recordedError } from '../run/errors.ts';
import { DEFAULT_ATTEMPTS } from '../run/retry-policy.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { Prepared, StepFacts } from '../run/step.ts';
import type { RunState } from './run-changer.ts';
import { fail, scheduleRetry } from './step-endings.ts';

/** What could not be read, and what is added when the step gives up. */
interface Unread {
  what: string;
  finally: string;
}

/** The step needs a value of its target before it is proposed: it reads again later, and fails after its last attempt. */
export function readLater(
  reader: { clock: Clock; random: () => number },
  { workflow }: RunState,
  draft: RunDraft,
  step: StepFacts & Partial<Prepared>,
  unreadable: Unreadable,
  unread: Unread,
): void {
  const { why, retryable } = unreadable;
  const { retry } = workflow.steps[step.index] ?? {};
  const tried = { ...step, attempt: step.attempt + 1 };
  const message = `${unread.what} could not be read: ${why}`;
  if (!retryable || tried.attempt >= (retry?.attempts ?? DEFAULT_ATTEMPTS)) {
    fail(draft, tried, recordedError('TARGET_REFUSED', `${message}; ${unread.finally}`), { input: step.input });
    return;
  }
  const delaysMs = retry?.backoffSeconds?.map((seconds) => seconds * 1000);
  const notBefore = callableFrom(reader, unreadable);
  scheduleRetry(reader, draft, tried, recordedError('TARGET_REFUSED', message), { notBefore, delaysMs });
}
