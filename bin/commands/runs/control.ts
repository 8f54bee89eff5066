import { printable } from '../../terminal/terminal.ts';
import type { Call, Command, Option } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../failure.ts';
import { findRunId } from './find-run.ts';

const REASON: Record<string, Option> = { reason: { value: 'TEXT', description: 'reason, stored in the run' } };

export const runsControl: readonly Command[] = [
  control('cancel', 'cancel a run; it makes no more writes', REASON, (call) => ({
    reason: call.option('reason'),
  })),
  control('pause', 'pause a run when its current steps have finished', REASON, (call) => ({
    reason: call.option('reason'),
  })),
  control('rollback', 'undo the writes of a run, newest first, and end it', REASON, (call) => ({
    reason: call.option('reason'),
  })),
  control('resume', 'resume a paused run', {}, () => ({})),
  control(
    'retry',
    'retry failed steps now',
    { step: { value: 'STEP', description: 'only this step (default: all failed steps)' } },
    (call) => ({ step: call.option('step') }),
  ),
  control(
    'signal',
    'send a signal to a waiting run',
    {
      event: { value: 'EVENT', required: true, description: 'name of the signal' },
      payload: { value: 'JSON', description: 'output of the waiting step' },
    },
    signalBody,
  ),
];

function control(
  command: string,
  description: string,
  options: Record<string, Option>,
  bodyOf: (call: Call) => Record<string, unknown>,
): Command {
  return {
    name: `runs ${command}`,
    args: ['ID'],
    description,
    options,
    async run(call): Promise<ExitCode> {
      const body = bodyOf(call);
      const api = call.api();
      const run = await api.control(await findRunId(api, call.arg(0)), command, body);
      if (call.json) call.printJson(run);
      else call.terminal.print(printable(`${run.runId} is ${run.status}`));
      return EXIT.ok;
    },
  };
}

function signalBody(call: Call): Record<string, unknown> {
  const event = call.option('event');
  if (!event) throw new UsageError('--event is required: the name of the signal');
  try {
    return { event, payload: JSON.parse(call.option('payload') ?? 'null') };
  } catch {
    throw new UsageError('--payload must be JSON');
  }
}
