import type { TemplateResource } from './template.ts';

/** Refuses circular dependencies, which CloudFormation refuses only at deployment. */
export function refuseCircularDependencies(resources: Record<string, TemplateResource>): void {
  const finished = new Set<string>();
  const path: string[] = [];
  const visit = (logicalId: string): void => {
    if (finished.has(logicalId)) return;
    const seenAt = path.indexOf(logicalId);
    if (seenAt >= 0) {
      throw new Error(`the template has a circular dependency: ${[...path.slice(seenAt), logicalId].join(' -> ')}`);
    }
    path.push(logicalId);
    for (const next of dependencies(resources[logicalId], resources)) visit(next);
    path.pop();
    finished.add(logicalId);
  };
  for (const logicalId of Object.keys(resources)) visit(logicalId);
}

function dependencies(resource: TemplateResource | undefined, all: Record<string, TemplateResource>): Set<string> {
  const found = new Set<string>([resource?.DependsOn ?? []].flat());
  collectReferences(resource?.Properties, found);
  return new Set([...found].filter((name) => name in all));
}

function collectReferences(value: unknown, found: Set<string>): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, item] of Object.entries(value)) {
    if (key === 'Ref') found.add(String(item));
    else if (key === 'Fn::GetAtt') found.add(String((item as string[])[0]));
    else collectReferences(item, found);
  }
}
