import { didYouMean } from '../entry/did-you-mean.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { type CalledVersions, callKey } from './expand-workflow.ts';
import { openWorkflow, type ReadWorkflow } from './parse-workflow.ts';

type Versions = Pick<Definitions, 'workflow' | 'workflowVersions' | 'newestWorkflows'>;

/** For the hint in an error. */
const NAMES_COMPARED_MAX = 100;

/** Reads a workflow file together with the published versions that it calls. */
export async function readCallingWorkflow(definitions: Versions, tenant: string, text: string): Promise<ReadWorkflow> {
  const file = openWorkflow(text);
  const calls = new Map(file.calls().map((call) => [callKey(call), call]));
  const found = [...calls].map(async ([key, { workflow, version }]) => [
    key,
    await versionOf(definitions, tenant, workflow, version),
  ]);
  return file.read(new Map(await Promise.all(found as Promise<Entry>[])));
}

type Found = CalledVersions extends ReadonlyMap<string, infer Each> ? Each : never;
type Entry = [string, Found];

async function versionOf(definitions: Versions, tenant: string, name: string, version?: number): Promise<Found> {
  const [newest] = await definitions.workflowVersions(tenant, name, { limit: 1 });
  if (!newest) {
    const others = await definitions.newestWorkflows(tenant, { limit: NAMES_COMPARED_MAX });
    const hint = didYouMean(
      name,
      others.map(({ workflow }) => workflow.name),
    );
    return { problem: `there is no workflow "${name}"${hint || '; publish it first'}` };
  }
  if (version === undefined || version === newest.version) return newest;
  const workflow = await definitions.workflow(tenant, name, version);
  return workflow
    ? { version, workflow }
    : { problem: `"${name}" has no version ${version}; the newest is ${newest.version}` };
}
