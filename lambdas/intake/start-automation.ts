import { closeNameOr, didYouMean } from '../entry/did-you-mean.ts';
import { isoNow } from '../entry/ports.ts';
import type { Automation, Definitions } from '../pipeline/definitions.ts';
import { startInputs } from '../pipeline/start-inputs.ts';
import { CountersignError } from '../run/errors.ts';
import type { StartedRun } from '../run/idempotency.ts';
import type { StartedAutomation } from '../run-changes/new-run.ts';
import type { Expressions } from '../workflow/expressions/expressions.ts';
import type { PublishedWorkflow } from '../workflow/workflow.ts';
import { type RequestedRun, type RunStarter, requestRun } from './request-run.ts';

export interface Starter extends RunStarter {
  definitions: Pick<Definitions, 'automations' | 'workflow' | 'workflowVersions'>;
  expressions: Expressions;
}

/** The automation with this name, if it may start runs. */
export async function startableAutomation(
  { definitions }: { definitions: Pick<Definitions, 'automations'> },
  tenant: string,
  name: string,
): Promise<Automation> {
  const all = await definitions.automations(tenant);
  const found = all.find((each) => each.name === name);
  if (!found) {
    const names = all.map((each) => each.name);
    throw new CountersignError(
      'NOT_FOUND',
      `there is no automation ${name}${closeNameOr('automations list', name, names)}`,
    );
  }
  if (!found.enabled) {
    throw new CountersignError('CONFLICT', `the automation ${name} is disabled; enable it first, then start the run`);
  }
  return found;
}

/**
 * The automation in whose name a workflow runs. Policies permit by automation, so a run may not take the name of an
 * automation that runs another workflow.
 */
export async function automationOfWorkflow(
  starter: Pick<Starter, 'definitions'>,
  tenant: string,
  { workflow, automation }: { workflow: { name: string; version?: number }; automation?: string },
): Promise<StartedAutomation> {
  const { name, version } = await startableVersion(starter, tenant, workflow);
  if (automation === undefined) {
    const same = (await starter.definitions.automations(tenant)).find((each) => each.name === name);
    if (!same) return { name, workspace: 'default', workflow: { name, version } };
    return ofWorkflow(await startableAutomation(starter, tenant, name), name, version);
  }
  return ofWorkflow(await startableAutomation(starter, tenant, automation), name, version);
}

function ofWorkflow(automation: Automation, name: string, version: number): StartedAutomation {
  if (automation.workflow.name === name) return { ...automation, workflow: { name, version } };
  throw new CountersignError(
    'CONFLICT',
    `the automation ${automation.name} runs the workflow ${automation.workflow.name}, not ${name}; name an automation of ${name}`,
  );
}

/** The version that was asked for, or the newest. */
export async function publishedVersion(
  { definitions }: Pick<Starter, 'definitions'>,
  tenant: string,
  { name, version }: { name: string; version?: number },
): Promise<{ name: string; version: number; workflow: PublishedWorkflow }> {
  const [newest] = await definitions.workflowVersions(tenant, name, { limit: 1 });
  if (!newest) {
    const used = (await definitions.automations(tenant)).map(({ workflow }) => workflow.name);
    const hint =
      didYouMean(name, [...new Set(used)]) || '; countersign workflow list shows all, workflow publish adds one';
    throw new CountersignError('NOT_FOUND', `there is no workflow ${name}${hint}`);
  }
  if (version === undefined || version === newest.version) return { name, ...newest };
  const workflow = await definitions.workflow(tenant, name, version);
  if (workflow) return { name, version, workflow };
  throw new CountersignError(
    'NOT_FOUND',
    `there is no version ${version} of workflow ${name}; the newest is ${newest.version}`,
  );
}

/**
 * The newest version, or one that an enabled automation runs. Other versions were replaced, perhaps because they were
 * wrong; who may publish them again, may do so.
 */
export async function startableVersion(
  starter: Pick<Starter, 'definitions'>,
  tenant: string,
  wanted: { name: string; version?: number },
): Promise<{ name: string; version: number; workflow: PublishedWorkflow }> {
  const found = await publishedVersion(starter, tenant, wanted);
  const newest = await publishedVersion(starter, tenant, { name: wanted.name });
  if (found.version === newest.version) return found;
  const automations = (await starter.definitions.automations(tenant)).filter(
    ({ enabled, workflow }) => enabled && workflow.name === found.name,
  );
  if (automations.some(({ workflow }) => workflow.version === found.version)) return found;
  const others = automations.map(({ name, workflow }) => `${name} runs version ${workflow.version}`).join(', ');
  throw new CountersignError(
    'CONFLICT',
    `version ${found.version} of workflow ${found.name} is no longer used: the newest is ${newest.version}${others && `, ${others}`}. ` +
      'Start one of these, or publish the old content again',
  );
}

/** Checks that the run can start with these inputs, and starts it. */
export async function startAutomation(
  starter: Starter,
  requested: RequestedRun,
): Promise<{ isNew: boolean; run: StartedRun }> {
  const { tenant, automation, inputs, trigger } = requested;
  const { workflow } = await publishedVersion(starter, tenant, automation.workflow);
  const received = { ...trigger, receivedAt: isoNow(starter.clock) };
  const { expressions } = starter;
  // The worker computes them again when the run starts. Here the caller learns of a mistake.
  await startInputs({ expressions, tenant }, workflow, received, { given: inputs, from: automation.inputs });
  return requestRun(starter, requested);
}
