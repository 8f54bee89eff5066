import { AGENT_ENVIRONMENTS } from '../../agents/agent-terms.ts';
import { DEFAULT_PROFILE } from '../../agents/profiles.ts';
import { Problem } from '../../entry/http.ts';
import { type Starter, startableVersion } from '../../intake/start-automation.ts';
import { isAgentTool } from '../../run/lease.ts';
import type { RunStore } from '../../run/run-store.ts';
import { isWeaker, type ValidationMode } from '../../run/validation-mode.ts';
import { finalOnlyProblems } from '../../workflow/checks/check-workflow.ts';
import type { PublishedWorkflow, Workflow } from '../../workflow/workflow.ts';
import type { ExecutionBody } from '../contract/runs/executions.ts';

interface Ports extends Pick<Starter, 'definitions'> {
  runs: Pick<RunStore, 'listRuns'>;
}

/** The workflow that an execution runs, if it can run as requested. */
export async function runbookOf(
  ports: Ports,
  tenant: string,
  body: ExecutionBody,
): Promise<{ name: string; version: number; workflow: PublishedWorkflow }> {
  const wanted = body.runbook_id ?? (await lastRunbook(ports, tenant, body.ticket_id));
  const [name = '', version] = wanted.split('@');
  const found = await startableVersion(ports, tenant, { name, ...(version && { version: Number(version) }) });
  if (body.validation_mode) assertModeFits(found.workflow, body.validation_mode);
  if (body.environment_profile) assertProfileFits(found.workflow, body.environment_profile);
  return found;
}

async function lastRunbook({ runs }: Ports, tenant: string, ticket: string): Promise<string> {
  const { items } = await runs.listRuns(tenant, { subject: ticket, limit: 1 });
  const [last] = items;
  if (last) return last.workflow.name;
  throw new Problem(400, 'BAD_REQUEST', `runbook_id: no run is about ${ticket} yet, so name the workflow to run`);
}

/** Refuses a mode that would remove an approval, or that the workflow cannot have. */
export function assertModeFits(workflow: Workflow, mode: ValidationMode): void {
  const own = workflow.validation?.mode;
  if (own !== undefined && isWeaker(mode, own)) {
    const detail = `the workflow ${workflow.name} has ${own}, which is stricter than ${mode}; request ${own} or a stricter mode`;
    throw new Problem(400, 'BAD_REQUEST', `validation_mode: ${detail}`);
  }
  const [problem] = finalOnlyProblems({ ...workflow, validation: { mode } });
  if (problem) throw new Problem(400, 'BAD_REQUEST', `validation_mode: ${problem.message}`);
}

/** A profile that an expression selects is checked before the command is assigned. */
function assertProfileFits({ name, steps }: Workflow, wanted: string): void {
  const commands = steps.filter(({ tool }) => isAgentTool(tool));
  if (commands.length === 0) {
    const detail = `the workflow ${name} runs no command; leave it out`;
    throw new Problem(400, 'BAD_REQUEST', `environment_profile: ${detail}`);
  }
  for (const { id, with: input } of commands) {
    const profile = knownProfile(input);
    if (profile === undefined || profile === wanted) continue;
    throw new Problem(400, 'BAD_REQUEST', `environment_profile: step ${id} of ${name} has the profile ${profile}`);
  }
}

function knownProfile(input: unknown): string | undefined {
  const { environment, profile } = (input ?? {}) as { environment?: unknown; profile?: unknown };
  if (typeof profile === 'string') return profile.includes('{%') ? undefined : profile;
  const known = AGENT_ENVIRONMENTS.find((each) => each === environment);
  return known && DEFAULT_PROFILE[known];
}
