import type { RequestFor } from '../../../client/api-client.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command, Option } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../failure.ts';
import { findRunId } from './find-run.ts';

type ControlRoute = `POST /api/v1/runs/{id}/${'cancel' | 'pause' | 'rollback' | 'resume' | 'retry' | 'signal'}`;

const REASON: Record<string, Option> = { reason: { value: 'TEXT', description: 'reason, stored in the run' } };
const reasonOf = (call: Call) => ({ reason: call.option('reason') });

export const runsControl: readonly Command[] = [
  control('POST /api/v1/runs/{id}/cancel', 'cancel a run; it makes no more writes', REASON, reasonOf),
  control('POST /api/v1/runs/{id}/pause', 'pause a run when its current steps have finished', REASON, reasonOf),
  control('POST /api/v1/runs/{id}/rollback', 'undo the writes of a run, newest first, and end it', REASON, reasonOf),
  control('POST /api/v1/runs/{id}/resume', 'resume a paused run', {}, () => ({})),
  control(
    'POST /api/v1/runs/{id}/retry',
    'retry failed steps now',
    { step: { value: 'STEP', description: 'only this step (default: all failed steps)' } },
    (call) => ({ step: call.option('step') }),
  ),
  control(
    'POST /api/v1/runs/{id}/signal',
    'send a signal to a waiting run',
    {
      event: { value: 'EVENT', required: true, description: 'name of the signal' },
      payload: { value: 'JSON', description: 'output of the waiting step' },
    },
    signalBody,
  ),
];

function control<Route extends ControlRoute>(
  route: Route,
  description: string,
  options: Record<string, Option>,
  bodyOf: (call: Call) => RequestFor<Route>['body'],
): Command {
  return {
    name: `runs ${route.split('/').at(-1)}`,
    args: ['ID'],
    description,
    options,
    async run(call): Promise<ExitCode> {
      const body = bodyOf(call);
      const api = call.api();
      const params = { id: await findRunId(api, call.arg(0)) };
      const run = await api.call<ControlRoute>(route, { params, body } as RequestFor<ControlRoute>);
      if (call.json) call.printJson(run);
      else call.terminal.print(printable(`${run.runId} is ${run.status}`));
      return EXIT.ok;
    },
  };
}

function signalBody(call: Call): RequestFor<'POST /api/v1/runs/{id}/signal'>['body'] {
  const event = call.option('event');
  if (!event) throw new UsageError('--event is required: the name of the signal');
  try {
    return { event, payload: JSON.parse(call.option('payload') ?? 'null') };
  } catch {
    throw new UsageError('--payload must be JSON');
  }
}
