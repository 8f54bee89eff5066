import { BEDROCK } from '../connectors/connections.ts';
import { findOperation } from '../connectors/registry.ts';
import type { Automation, Definitions } from '../pipeline/definitions.ts';
import type { Workflow } from '../workflow/workflow.ts';

/** The connections that the steps of a workflow use. Bedrock needs none. */
export function connectionsUsedBy({ steps }: Pick<Workflow, 'steps'>): string[] {
  const used = steps.flatMap(({ tool }) => findOperation(tool)?.connection ?? []);
  return [...new Set(used)].filter((connection) => connection !== BEDROCK).sort();
}

/** The enabled automations whose workflow uses a connection. */
export async function automationsUsing(
  definitions: Pick<Definitions, 'automations' | 'workflow'>,
  tenant: string,
  connection: string,
): Promise<Automation[]> {
  const enabled = (await definitions.automations(tenant)).filter((automation) => automation.enabled);
  const uses = await Promise.all(
    enabled.map(async ({ workflow: { name, version } }) => {
      const workflow = await definitions.workflow(tenant, name, version);
      return workflow !== undefined && connectionsUsedBy(workflow).includes(connection);
    }),
  );
  return enabled.filter((_automation, index) => uses[index]);
}
