import { hashOf, sha256Hex } from '../../run/canonical-json.ts';
import type { CreatedRun } from '../../run/commit.ts';
import { CountersignError } from '../../run/errors.ts';
import { earlier, later } from '../../run/lease.ts';
import type { ProposedCallInput, Run } from '../../run/run.ts';
import type { RunDraft } from '../../run/run-draft.ts';
import type { LoadedRun } from '../../run/run-store.ts';
import {
  hasOpenSession,
  type OpenSessionStep,
  REFUSALS_RECORDED_MAX,
  SESSION_SILENT_MS,
  sessionActor,
} from '../../run/session.ts';
import { counted, METRICS } from '../../telemetry/metrics.ts';
import { sessionSpan, traceparentOf } from '../../telemetry/trace-context.ts';
import { changeRun } from '../change-run.ts';
import { concludeRun } from '../conclusion/conclude-run.ts';
import { newRun } from '../new-run.ts';
import type { RunChanger, RunState } from '../run-changer.ts';
import { ActionRefused, type AllowedCall, allowedCall, type ProposedCall } from './allowed-action.ts';
import { assertIsFor, openSession, type SessionTarget } from './open-session.ts';

export type ActionProposer = RunChanger;

/** `key`: the caller's own id of the request. */
export interface ActionProposal extends ProposedCall {
  key: string;
}

/** The same proposal of one session has the same run, so that it is made once. */
export const actionRunId = ({ tenant, runId, stepIndex }: SessionTarget, key: string): string =>
  `run_${sha256Hex(JSON.stringify(['action', tenant, runId, stepIndex, key])).slice(0, 32)}`;

/**
 * A session proposes a call. One transaction adds the action to the session and creates the run that makes it: so a session
 * has no action after its end, above its limit, or twice. From then on it is a run like any other,
 * with policy, gates, approval, receipt, rollback and evidence.
 */
export async function proposeAction(
  proposer: ActionProposer,
  target: SessionTarget,
  { key, ...proposal }: ActionProposal,
): Promise<{ isNew: boolean; action: LoadedRun }> {
  const { tenant } = target;
  const runId = actionRunId(target, key);
  const repeated = await proposer.runs.load(tenant, runId);
  if (repeated) return { isNew: false, action: await sameAction(proposer, target, proposal, repeated) };
  let refused: ActionRefused | undefined;
  let isNew = false;
  await changeRun(proposer, target, async (state, draft) => {
    refused = undefined;
    isNew = false;
    const step = openSession(state, target, draft.at);
    if (step.session.actions.includes(runId)) return undefined;
    try {
      addAction(state, draft, step, runId, calledWithin(step, proposal));
      isNew = true;
    } catch (error) {
      if (!(error instanceof ActionRefused)) throw error;
      refused = error;
      if (step.session.refused >= REFUSALS_RECORDED_MAX) return undefined;
      recordRefusal(draft, step, proposal, error);
    }
    await concludeRun(proposer.runs, state, draft);
    // The worker checks the session when it is due. A message for each action would only find that nothing is due.
    return {};
  });
  if (refused) {
    proposer.log.warn('an action of a session was refused', { ...target, because: refused.because });
    proposer.telemetry?.record(counted(METRICS.actionsRefused, { result: refused.because }));
    throw refused;
  }
  const action = await proposer.runs.load(tenant, runId);
  if (!action) throw new CountersignError('CONFLICT', 'the action is being created; try again');
  return { isNew, action: isNew ? action : await sameAction(proposer, target, proposal, action) };
}

function calledWithin({ session }: OpenSessionStep, proposal: ProposedCall): AllowedCall {
  const call = allowedCall(session, proposal);
  if (session.actions.length < session.actionsMax) return call;
  throw new ActionRefused(
    'too_many_actions',
    `the session has proposed ${session.actionsMax} actions, and its step allows no more; complete it`,
  );
}

/** The key was used before: with the same call, the answer is the same; another call is refused. */
async function sameAction(
  { runs }: ActionProposer,
  target: SessionTarget,
  proposal: ProposedCall,
  action: LoadedRun,
): Promise<LoadedRun> {
  const parent = await runs.runAndStep(target.tenant, target.runId, target.stepIndex);
  if (hasOpenSession(parent?.step)) assertIsFor(target, parent.step);
  const { session } = parent?.step ?? {};
  const asked = session && allowedCall(session, proposal);
  const made = action.run.request?.action;
  if (asked && made?.tool === asked.tool && made.inputHash === hashOf(asked.input)) return action;
  throw new CountersignError(
    'IDEMPOTENCY_CONFLICT',
    `the idempotency key was used before for another action, ${action.run.runId}; use a new key`,
  );
}

function addAction(state: RunState, draft: RunDraft, step: OpenSessionStep, runId: string, call: AllowedCall): void {
  const { session } = step;
  const inputHash = hashOf(call.input);
  draft
    .create(actionRun(state, step, runId, call, draft.at))
    .put(seen(step, draft.at, { actions: [...session.actions, runId] }))
    .record({
      type: 'session.action_proposed',
      step: step.id,
      index: step.index,
      actionRunId: runId,
      tool: call.tool,
      inputHash,
      actor: sessionActor(session),
    });
}

/** Only a hash of the tool: a session chooses the text. */
function recordRefusal(
  draft: RunDraft,
  step: OpenSessionStep,
  { tool }: ProposedCall,
  { because }: ActionRefused,
): void {
  const refused = step.session.refused + 1;
  draft.put(seen(step, draft.at, { refused })).record({
    type: 'session.action_refused',
    ...{ step: step.id, index: step.index, because, refused },
    toolHash: sha256Hex(tool),
  });
}

/** The step after activity of its session. */
export function seen(
  step: OpenSessionStep,
  at: string,
  changes: Partial<OpenSessionStep['session']> = {},
): OpenSessionStep {
  const { awaits, session } = step;
  const lookAt = earlier(awaits.until, later(at, SESSION_SILENT_MS));
  return { ...step, updatedAt: at, awaits: { ...awaits, lookAt }, session: { ...session, ...changes, seenAt: at } };
}

/**
 * A run with one step, in the name of the automation of the session, with its trigger. Everybody whose input the session
 * may have used is a maker, and so is the session itself.
 */
export function actionRun(
  { run, trigger, steps }: Pick<RunState, 'run' | 'trigger' | 'steps'>,
  { id, index, session }: Pick<OpenSessionStep, 'id' | 'index' | 'session'>,
  runId: string,
  { tool, input, chosen, risk, session: command }: AllowedCall & Pick<ProposedCallInput, 'session'>,
  at: string,
): CreatedRun {
  const { tenant, automation: name, workspace, workflow, subject } = run;
  const { caps, connections } = run.terms ?? {};
  const actor = sessionActor(session);
  const governed = [...steps.values()].flatMap((step) => step.governed?.request.action.makers ?? []);
  const { plan: _plan, ...event } = trigger;
  const ofAction = {
    ...event,
    action: { tool, input, chosen, sessionStep: id, ...(risk && { risk }), ...(command && { session: command }) },
    receivedAt: at,
  };
  const created = newRun({
    runId,
    tenant,
    automation: { name, workspace, workflow, ...(caps && { caps }), ...(connections && { connections }) },
    key: `action:${runId}`,
    ...(subject !== undefined && { subject }),
    trigger: ofAction,
    payloadHash: hashOf(trigger.payload),
    request: {
      ...demandsOf(run),
      actor,
      action: { tool, inputHash: hashOf(input), of: { runId: run.runId, step: id } },
    },
    makers: [...(run.makers ?? []), ...requesterOf(run), ...governed, actor],
    traceparent: traceparentOf(run, sessionSpan(index)),
  });
  return { ...created, trigger: ofAction };
}

/** An action is as strict as the run of its session. */
function demandsOf({ request }: Run) {
  const { validationMode, profile } = request ?? {};
  return { ...(validationMode && { validationMode }), ...(profile && { profile }) };
}

const requesterOf = ({ request }: Run): string[] =>
  request === undefined || request.actor.startsWith('schedule:') ? [] : [request.actor];
