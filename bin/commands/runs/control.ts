import { printable } from '../../terminal/terminal.ts';
import type { Call, Command, Option } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../failure.ts';
import { findRunId } from './find-run.ts';

const REASON: Record<string, Option> = { reason: { value: 'TEXT', says: 'why; it becomes part of the record' } };

/** What an operator may ask of a run: one command each, all of one shape. */
export const runsControl: readonly Command[] = [
  control('cancel', 'end a run; nothing of it is written any more', REASON, (call) => ({
    reason: call.text('reason'),
  })),
  control('pause', 'stop a run once nothing of it is in flight', REASON, (call) => ({ reason: call.text('reason') })),
  control('rollback', 'take back what a run wrote, newest first, and end it', REASON, (call) => ({
    reason: call.text('reason'),
  })),
  control('resume', 'let a paused run go on', {}, () => ({})),
  control(
    'retry',
    'try failed steps again now',
    { step: { value: 'STEP', says: 'only this one (default: all that failed)' } },
    (call) => ({ step: call.text('step') }),
  ),
  control(
    'signal',
    'give a waiting run the signal it waits for',
    {
      event: { value: 'EVENT', required: true, says: 'the name of the signal' },
      payload: { value: 'JSON', says: 'what to hand to the step as its output' },
    },
    signalBody,
  ),
];

function control(
  command: string,
  says: string,
  options: Record<string, Option>,
  bodyOf: (call: Call) => Record<string, unknown>,
): Command {
  return {
    name: `runs ${command}`,
    takes: ['ID'],
    says,
    options,
    async run(call): Promise<ExitCode> {
      const body = bodyOf(call);
      const api = call.api();
      const run = await api.control(await findRunId(api, call.positional(0)), command, body);
      if (call.json) call.printJson(run);
      else call.terminal.print(printable(`${run.runId} is ${run.status}`));
      return EXIT.ok;
    },
  };
}

function signalBody(call: Call): Record<string, unknown> {
  const event = call.text('event');
  if (!event) throw new UsageError('name the signal with --event');
  try {
    return { event, payload: JSON.parse(call.text('payload') ?? 'null') };
  } catch {
    throw new UsageError('--payload is not JSON');
  }
}
