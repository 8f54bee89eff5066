import * as z from 'zod';
import { BEDROCK } from '../connectors/connections.ts';
import { findOperation } from '../connectors/registry.ts';
import { SESSION_TOOL } from '../connectors/session/session.ts';
import type { Automation, Definitions } from '../pipeline/definitions.ts';
import type { Workflow, WorkflowStep } from '../workflow/workflow.ts';

const SessionActions = z.object({ actions: z.array(z.object({ tool: z.string() })) });

/** The tools that a step may call: its own, and those of the actions that its session may propose. */
export function toolsOf({ tool, with: input }: Pick<WorkflowStep, 'tool' | 'with'>): string[] {
  if (tool !== SESSION_TOOL) return [tool];
  const { actions = [] } = SessionActions.safeParse(input).data ?? {};
  return [tool, ...actions.map((action) => action.tool)];
}

/** The connections that the steps of a workflow, and the actions of their sessions, use. Bedrock needs none. */
export function connectionsUsedBy({ steps }: Pick<Workflow, 'steps'>): string[] {
  const used = steps.flatMap(toolsOf).flatMap((tool) => findOperation(tool)?.connection ?? []);
  return [...new Set(used)].filter((connection) => connection !== BEDROCK).sort();
}

/** The enabled automations whose workflow uses a connection. */
export function automationsUsing(
  definitions: Pick<Definitions, 'automations' | 'workflow'>,
  tenant: string,
  connection: string,
): Promise<Automation[]> {
  return automationsWith(definitions, tenant, (workflow) => connectionsUsedBy(workflow).includes(connection));
}

/** The enabled automations whose workflow has a session that names a configuration. */
export function automationsWithSessionIn(
  definitions: Pick<Definitions, 'automations' | 'workflow'>,
  tenant: string,
  configuration: string,
): Promise<Automation[]> {
  return automationsWith(definitions, tenant, ({ steps }) =>
    steps.some(({ tool, with: input }) => tool === SESSION_TOOL && input.configuration === configuration),
  );
}

async function automationsWith(
  definitions: Pick<Definitions, 'automations' | 'workflow'>,
  tenant: string,
  matches: (workflow: Pick<Workflow, 'steps'>) => boolean,
): Promise<Automation[]> {
  const enabled = (await definitions.automations(tenant)).filter((automation) => automation.enabled);
  const uses = await Promise.all(
    enabled.map(async ({ workflow: { name, version } }) => {
      const workflow = await definitions.workflow(tenant, name, version);
      return workflow !== undefined && matches(workflow);
    }),
  );
  return enabled.filter((_automation, index) => uses[index]);
}
