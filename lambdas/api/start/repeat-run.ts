import { didYouMean } from '../../entry/did-you-mean.ts';
import { Problem } from '../../entry/http.ts';
import type { RequestedRun } from '../../intake/request-run.ts';
import { publishedVersion, type Starter, startableVersion } from '../../intake/start-automation.ts';
import { keyIsFree } from '../../run/receipt.ts';
import { idInExpressions, isTerminal, type Run, type RunRequest } from '../../run/run.ts';
import type { LoadedRun, RunStore } from '../../run/run-store.ts';
import { receiptKeyOf } from '../../run/step.ts';
import { repeatedSteps, succeededSteps } from '../../workflow/repeated-steps.ts';
import type { Workflow } from '../../workflow/workflow.ts';
import type { Caller } from '../authorizer/caller.ts';

interface Repeater extends Pick<Starter, 'definitions'> {
  runs: Pick<RunStore, 'load' | 'receipts'>;
}
type Repeated = Omit<RequestedRun, 'tenant' | 'key' | 'requestHash'>;

/** A new run of the same trigger, in the name of the same automation. The caller is a maker of its writes. */
export async function rerunOf(
  ports: Repeater,
  { tenant, person }: Caller,
  runId: string,
  { workflowVersion }: { workflowVersion: 'same' | 'newest' },
): Promise<Repeated> {
  const original = await endedRun(ports, tenant, runId);
  const { name, version } = original.run.workflow;
  const wanted = { name, ...(workflowVersion === 'same' && { version }) };
  await assertAutomationStarts(ports, tenant, original.run);
  const published = await startableVersion(ports, tenant, wanted);
  return {
    ...sameTrigger(original, published.version),
    request: { actor: person, rerunOf: original.run.runId, ...demandsOf(original.run) },
    // They may have written the trigger or the inputs: those of an applied plan did.
    makers: withMakersOf(original.run, person),
  };
}

/** A new run of the same trigger and version, which repeats the original from one step on. */
export async function replayOf(
  ports: Repeater,
  { tenant, person }: Caller,
  runId: string,
  { step }: { step?: string },
): Promise<Repeated> {
  const original = await endedRun(ports, tenant, runId);
  await assertAutomationStarts(ports, tenant, original.run);
  // It continues what the original began, so it has the same steps, whichever version is used now.
  const { workflow, version } = await publishedVersion(ports, tenant, original.run.workflow);
  const from = firstStep(workflow, original, step);
  const repeated = repeatedSteps(workflow, from, succeededSteps(original));
  await assertOutcomesKnown(ports, tenant, original, repeated);
  return {
    ...sameTrigger(original, version),
    request: {
      actor: person,
      replay: { of: original.run.runId, from, ...rootOf(original.run) },
      ...demandsOf(original.run),
    },
    // The outputs that the replay takes over may contain what others supplied, or edited.
    makers: [...new Set([...withMakersOf(original.run, person), ...makersOfCopied(original, repeated)])],
  };
}

/** A repetition is as strict as its original. */
function demandsOf({ request }: Run): Pick<RunRequest, 'validationMode' | 'profile'> {
  const { validationMode, profile } = request ?? {};
  return { ...(validationMode && { validationMode }), ...(profile && { profile }) };
}

const makersOfCopied = ({ steps }: LoadedRun, repeated: ReadonlySet<number>): string[] =>
  steps.flatMap(({ index, governed }) => (repeated.has(index) ? [] : (governed?.request.action.makers ?? [])));

const withMakersOf = ({ makers = [] }: Run, person: string): string[] => [...new Set([...makers, person])];

/** Somebody may have disabled the automation because its runs do harm. A run without an automation has the name of its workflow. */
async function assertAutomationStarts({ definitions }: Repeater, tenant: string, run: Run): Promise<void> {
  const { automation: name, workflow } = run;
  const found = (await definitions.automations(tenant)).find((each) => each.name === name);
  if (!found && name === workflow.name) return;
  const refuse = (detail: string) => new Problem(409, 'CONFLICT', detail);
  const instead = `start its workflow instead: countersign runs start ${workflow.name}`;
  if (!found) throw refuse(`the automation ${name} of this run no longer exists; ${instead}`);
  if (!found.enabled)
    throw refuse(`the automation ${name} of this run is disabled; enable it first, then repeat the run`);
  if (found.workflow.name === workflow.name) return;
  throw refuse(`the automation ${name} of this run now runs the workflow ${found.workflow.name}; ${instead}`);
}

/** The first run of a chain of replays. */
function rootOf(run: Run): { root?: string } {
  const root = idInExpressions(run);
  return root === run.runId ? {} : { root };
}

function sameTrigger({ run, trigger }: LoadedRun, version: number) {
  const { source, event, fields, payload, makers, simulated } = trigger;
  const { automation, workspace, workflow, subject, inputs, inputsFrom, terms, notify } = run;
  return {
    automation: {
      name: automation,
      workspace,
      ...terms,
      // A thread belongs to its own run.
      notifications: (notify ?? []).filter((each) => each.type !== 'slack_thread'),
      workflow: { name: workflow.name, version },
      ...(inputsFrom && { inputs: inputsFrom }),
    },
    trigger: { source, event, fields, payload, ...(makers && { makers }), ...(simulated && { simulated }) },
    ...(subject !== undefined && { subject }),
    ...(inputs && { inputs }),
  };
}

/** The response is the same for a run of another tenant and for a run that does not exist. */
async function endedRun({ runs }: Repeater, tenant: string, runId: string): Promise<LoadedRun> {
  const loaded = await runs.load(tenant, runId);
  if (!loaded) throw new Problem(404, 'NOT_FOUND', `there is no run ${runId}`);
  const { status } = loaded.run;
  if (!isTerminal(loaded.run)) {
    const detail = `the run is ${status}; only a run that has ended can be repeated: wait for its end, or cancel it`;
    throw new Problem(409, 'RUN_INVALID_TRANSITION', detail);
  }
  if (loaded.run.rollbackOf) {
    const { runId: undone } = loaded.run.rollbackOf;
    const close = `countersign runs resolve ${runId} --as succeeded|failed --reason TEXT`;
    const remains = status === 'succeeded' ? '' : `; correct by hand what it did not undo, then close it: ${close}`;
    const detail = `this run rolls back ${undone} and cannot be repeated${remains}`;
    throw new Problem(409, 'RUN_INVALID_TRANSITION', detail);
  }
  if (loaded.trigger.action) {
    const detail = 'this run makes one call that was proposed from outside; propose it again instead';
    throw new Problem(409, 'RUN_INVALID_TRANSITION', detail);
  }
  if (loaded.triggerIsLost) throw new Problem(409, 'CONTEXT_MISSING', 'the trigger of the run is no longer stored');
  return loaded;
}

function firstStep({ steps }: Workflow, original: LoadedRun, wanted: string | undefined): string {
  const ids = steps.map(({ id }) => id);
  if (wanted !== undefined) {
    if (ids.includes(wanted)) return wanted;
    const known = didYouMean(wanted, ids) || `; its steps are ${ids.join(', ')}`;
    throw new Problem(400, 'BAD_REQUEST', `step: the workflow has no step ${wanted}${known}`);
  }
  const succeeded = succeededSteps(original);
  return ids.find((_, index) => !succeeded.has(index)) ?? ids[0] ?? '';
}

/** A write that may have been made must not be sent again before somebody has found out. */
async function assertOutcomesKnown(
  { runs }: Repeater,
  tenant: string,
  { steps }: LoadedRun,
  repeated: ReadonlySet<number>,
): Promise<void> {
  const keys = steps.flatMap((step) => (repeated.has(step.index) ? (receiptKeyOf(step) ?? []) : []));
  const receipts = keys.length > 0 ? await runs.receipts(tenant, keys) : [];
  const open = receipts.find((each) => each.effect !== 'read' && each.outcome !== 'succeeded' && !keyIsFree(each));
  if (!open) return;
  const detail = `it is unknown whether step ${open.stepId} of ${open.runId} was written; resolve that first`;
  throw new Problem(409, 'OUTCOME_UNKNOWN', detail);
}
