import type { AgentHints } from '../../agents/agent-registry.ts';
import { didYouMean } from '../../entry/did-you-mean.ts';
import type { Ids } from '../../entry/ports.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { CountersignError } from '../../run/errors.ts';
import { isTerminal, type Run } from '../../run/run.ts';
import { EXECUTION_STATE } from '../../run/statuses/execution-state.ts';
import { type AcceptedRules, acceptBrokenRules } from '../../run-changes/control/accept-broken-rules.ts';
import { assignRun, releaseRun } from '../../run-changes/control/assign-run.ts';
import { type Command, controlRun } from '../../run-changes/control/control-run.ts';
import { type Resolving, resolveRun } from '../../run-changes/control/resolve-run.ts';
import { rollBackEndedRun } from '../../run-changes/control/rollback-ended-run.ts';
import type { RunChanger } from '../../run-changes/run-changer.ts';
import { type SessionPorts, sessionHandlers } from '../actions/sessions.ts';
import type { Caller } from '../authorizer/caller.ts';
import type { Contract } from '../contract/index.ts';
import { outboxRoutes } from '../contract/operations.ts';
import { sessionRoutes } from '../contract/runs/actions.ts';
import { executionControlRoutes } from '../contract/runs/executions.ts';
import { caseRoutes, controlRoutes, subscriptionRoutes } from '../contract/runs/run-control.ts';
import type { RunSummary } from '../contract/runs/runs.ts';
import { outboxHandlers } from '../operations/outbox.ts';
import { router } from '../router.ts';
import { runSummary } from './run-views.ts';
import { type Subscriptions, subscriptionHandlers } from './subscriptions.ts';

/** Changes runs. `ids` names the run that undoes the writes of an ended run. */
interface ControlPorts extends SessionPorts, Subscriptions {
  definitions: RunChanger['definitions'] & Pick<Definitions, 'people'>;
  ids: Ids;
  hints?: AgentHints;
}

const routes = {
  ...controlRoutes,
  ...caseRoutes,
  ...sessionRoutes,
  ...subscriptionRoutes,
  ...executionControlRoutes,
  ...outboxRoutes,
};

/** One function changes runs, for people and for sessions, and resends outbox entries: it has the permissions for all. */
export const handleControl = router<ControlPorts, Contract['control']>(routes, {
  cancelRun: command((body: { reason?: string }) => ({ kind: 'cancel', ...body })),
  pauseRun: command((body: { reason?: string }) => ({ kind: 'pause', ...body })),
  resumeRun: command(() => ({ kind: 'resume' })),
  retryRun: command((body: { step?: string }) => ({ kind: 'retry', ...body })),
  cancelSession: command((body: { step?: string; reason?: string }) => ({ kind: 'cancel_session', ...body })),
  signalRun: command((body: { event: string; payload: unknown; id?: string }) => ({ kind: 'signal', ...body })),
  rollBackRun: change((ports, target, body: { reason?: string }, caller) => rollBack(ports, target, body, caller)),
  async rollBackExecution(ports, { caller, params, body: { step_number, ...body } }) {
    const target = { tenant: caller.tenant, runId: params.id };
    const run =
      step_number === undefined
        ? await rollBack(ports, target, body, caller)
        : await rollBackFrom(ports, target, { ...body, fromStep: step_number - 1 }, caller);
    const { runId: session_id, status, rolledBackBy: rollback_session_id = null } = run;
    return { status: 200, body: { session_id, state: EXECUTION_STATE[status], rollback_session_id } };
  },
  assignRun: change(async (ports, target, { assignee }: { assignee?: string }, { person: actor }) => {
    if (assignee !== undefined) await assertPerson(ports, target.tenant, assignee);
    return assignRun(ports, target, assignee ?? actor, actor);
  }),
  releaseRun: change((ports, target, _body: object, { person }) => releaseRun(ports, target, person)),
  acceptBrokenRules: change((ports, target, body: AcceptedRules, { person }) =>
    acceptBrokenRules(ports, target, body, person),
  ),
  resolveRun: change((ports, target, body: Resolving, { person }) => resolveRun(ports, target, body, person)),
  ...sessionHandlers,
  ...subscriptionHandlers,
  ...outboxHandlers,
});

type Target = { tenant: string; runId: string };

async function rollBack(ports: ControlPorts, target: Target, body: { reason?: string }, { person: actor }: Caller) {
  try {
    const { run } = await controlRun(ports, target, { kind: 'rollback', ...body }, actor);
    return run;
  } catch (error) {
    if (!(error instanceof CountersignError) || error.code !== 'RUN_TERMINAL_STATE') throw error;
    return rollBackEndedRun(ports, target, { ...body, actor, rollbackRunId: ports.ids.next('run') });
  }
}

/** Undoes the write of one step and all later writes. Those of an active run depend on what it does next. */
async function rollBackFrom(
  ports: ControlPorts,
  target: Target,
  { fromStep, reason }: { fromStep: number; reason?: string },
  { person: actor }: Caller,
) {
  const loaded = await ports.runs.load(target.tenant, target.runId);
  if (loaded && !isTerminal(loaded.run)) {
    const detail = `the execution is ${EXECUTION_STATE[loaded.run.status]}; cancel it first, or roll it back without step_number`;
    throw new CountersignError('RUN_INVALID_TRANSITION', detail);
  }
  const because = reason === undefined ? {} : { reason };
  return rollBackEndedRun(ports, target, { ...because, fromStep, actor, rollbackRunId: ports.ids.next('run') });
}

function change<Body>(changing: (ports: ControlPorts, target: Target, body: Body, caller: Caller) => Promise<Run>) {
  return async (
    ports: ControlPorts,
    { caller, params, body }: { caller: Caller; params: { id: string }; body: Body },
  ): Promise<{ status: 200; body: RunSummary }> => {
    const run = await changing(ports, { tenant: caller.tenant, runId: params.id }, body, caller);
    return { status: 200, body: runSummary(run) };
  };
}

function command<Body>(commandOf: (body: Body) => Command) {
  return change(async (ports, target, body: Body, { person }) => {
    const { run } = await controlRun(ports, target, commandOf(body), person);
    return run;
  });
}

async function assertPerson({ definitions }: ControlPorts, tenant: string, id: string): Promise<void> {
  const people = await definitions.people(tenant, { fresh: true });
  const ids = people.map((person) => person.id);
  if (ids.includes(id)) return;
  const listed = 'countersign people list shows all people';
  throw new CountersignError('INPUT_INVALID', `there is no person "${id}"${didYouMean(id, ids) || `; ${listed}`}`);
}
