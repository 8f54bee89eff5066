import { parsedInput } from '../run/check-input.ts';
import { later } from '../run/lease.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { Awaited } from '../run/step.ts';
import { SignalWait, TimeWait } from '../workflow/inner-tools.ts';

export function parseWait(tool: 'wait' | 'wait.external', input: unknown, { at, run }: RunDraft): Awaited {
  if (tool === 'wait') {
    const wait = parsedInput(TimeWait, tool, input);
    return {
      kind: 'time',
      until: 'until' in wait ? new Date(wait.until).toISOString() : later(at, wait.seconds * 1000),
    };
  }
  const { event, timeoutSeconds } = parsedInput(SignalWait, tool, input);
  const until = timeoutSeconds === undefined ? run.deadlineAt : later(at, timeoutSeconds * 1000);
  return { kind: 'signal', event, until };
}
