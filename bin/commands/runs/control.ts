import type { RequestFor } from '../../../client/api-client.ts';
import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import type { RunSummary } from '../../client/api-client.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command, Option } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../failure.ts';
import { runReference } from './find-run.ts';

type ControlCommand =
  | 'cancel'
  | 'pause'
  | 'rollback'
  | 'resume'
  | 'retry'
  | 'cancel-session'
  | 'signal'
  | 'assign'
  | 'release'
  | 'resolve'
  | 'accept-broken-rules';
type ControlRoute = `POST /api/v1/runs/{id}/${ControlCommand}`;

const REASON: Record<string, Option> = { reason: { value: 'TEXT', description: 'reason, stored in the run' } };
const reasonOf = (call: Call) => ({ reason: call.option('reason') });

export const runsControl: readonly Command[] = [
  control('POST /api/v1/runs/{id}/cancel', 'cancel a run; it makes no more writes', REASON, reasonOf),
  control('POST /api/v1/runs/{id}/pause', 'pause a run when its current steps have finished', REASON, reasonOf),
  control('POST /api/v1/runs/{id}/rollback', 'undo the writes of a run, also of an ended one', REASON, reasonOf),
  control(
    'POST /api/v1/runs/{id}/assign',
    'assign a run to yourself or to another person',
    { to: { value: 'PERSON', description: 'id of the person (default: you)' } },
    (call) => ({ assignee: call.option('to') }),
  ),
  control('POST /api/v1/runs/{id}/release', 'release a run, so that another person can take it', {}, () => ({})),
  control(
    'POST /api/v1/runs/{id}/resolve',
    'record the result of a run that ended without success',
    {
      as: { value: 'RESULT', required: true, description: 'succeeded or failed' },
      reason: { value: 'TEXT', required: true, description: 'what you found and did, stored in the run' },
      write: {
        value: 'STEP=FINDING',
        repeatable: true,
        description: 'happened or did_not, for each write of unknown outcome',
      },
    },
    resolveBody,
    'Check the target of each write of unknown outcome first. A write that happened is reused by later runs with the\nidentical write; one that did_not happen may be made again. The resolution is final; the status of the run stays.',
  ),
  control(
    'POST /api/v1/runs/{id}/accept-broken-rules',
    'accept that a run broke rules, so that its evidence is sealed as such',
    {
      rule: { value: 'NUMBER', repeatable: true, description: 'a rule that the log of the sealer names' },
      reason: { value: 'TEXT', required: true, description: 'why it may be sealed, stored in the run' },
    },
    rulesBody,
    'Only owners may. Find out first how the run could break the rule (RUNBOOK, "A run broke a rule"). evidence verify\nreports such a bundle as "rules broken".',
  ),
  control('POST /api/v1/runs/{id}/resume', 'resume a paused run', {}, () => ({})),
  control(
    'POST /api/v1/runs/{id}/retry',
    'retry failed steps now',
    { step: { value: 'STEP', description: 'only this step (default: all failed steps)' } },
    (call) => ({ step: call.option('step') }),
  ),
  control(
    'POST /api/v1/runs/{id}/cancel-session',
    'cancel the session of a step, and not the run',
    { step: { value: 'STEP', description: 'the step, if several have an open session' }, ...REASON },
    (call) => ({ step: call.option('step'), ...reasonOf(call) }),
    'The step fails, the session is canceled at its provider, and a later completion is refused. onFailure of the\nworkflow decides how the run continues: with pause, "runs retry" starts another session.',
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
  details?: string,
): Command {
  return {
    name: `runs ${route.split('/').at(-1)}`,
    args: ['ID'],
    description,
    ...(details !== undefined && { details }),
    options,
    async run(call): Promise<ExitCode> {
      const body = bodyOf(call);
      const api = call.api();
      const params = { id: runReference(call.arg(0)) };
      const run = await api.call<ControlRoute>(route, { params, body } as RequestFor<ControlRoute>);
      if (call.json) call.printJson(run);
      else for (const line of resultLines(run, route)) call.terminal.print(printable(line));
      return EXIT.ok;
    },
  };
}

/** The run, and what was added to it after its end. */
function resultLines(run: RunSummary, route: ControlRoute): string[] {
  const { runId, status, completedAt, assignee, resolution, rolledBackBy } = run;
  const resolved = resolution ? `, resolved as ${resolution.outcome} by ${resolution.actor}` : '';
  const nobody = route.endsWith('/release') ? '; nobody is assigned' : '';
  const owner = assignee === null ? nobody : `; assigned to ${assignee}`;
  return [
    `${runId} is ${status}${resolved}${owner}`,
    ...(completedAt !== null && rolledBackBy !== null
      ? [`its writes are undone by ${rolledBackBy}: npx countersign runs watch ${rolledBackBy}`]
      : []),
  ];
}

const RESULTS = ['succeeded', 'failed'] as const;
const FINDINGS = ['happened', 'did_not'] as const;

export function resolveBody(call: Call): RequestFor<'POST /api/v1/runs/{id}/resolve'>['body'] {
  const given = call.option('as');
  if (given === undefined) throw new UsageError(`--as is required: ${RESULTS.join(' or ')}`);
  const outcome = oneOf('--as', given, RESULTS);
  const reason = call.option('reason') ?? '';
  if (reason.trim() === '') throw new UsageError('--reason is required: what you found and did');
  const writes = call.options('write').map((text) => {
    const [, step = '', finding = ''] = /^([^=]+)=(.*)$/.exec(text) ?? [];
    if (step === '') throw new UsageError(`--write ${text} must be STEP=happened or STEP=did_not`);
    return [step, oneOf(`--write ${step}`, finding, FINDINGS)] as const;
  });
  return { outcome, reason, writes: Object.fromEntries(writes) };
}

function rulesBody(call: Call): RequestFor<'POST /api/v1/runs/{id}/accept-broken-rules'>['body'] {
  const rules = call.options('rule').map((text) => {
    if (/^[1-9]\d*$/.test(text)) return Number(text);
    throw new UsageError(`--rule must be the number of a rule, for example 9, not "${text}"`);
  });
  if (rules.length === 0) throw new UsageError('--rule is required: the number of each rule that the run broke');
  const reason = call.option('reason') ?? '';
  if (reason.trim() === '') throw new UsageError('--reason is required: why the run may be sealed');
  return { rules, reason };
}

function oneOf<Value extends string>(name: string, given: string, values: readonly Value[]): Value {
  const value = values.find((each) => each === given);
  if (value) return value;
  throw new UsageError(`${name} must be ${values.join(' or ')}, not "${given}"${didYouMean(given, values)}`);
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
