import type { TemplateResource } from './template.ts';

/** CloudFormation refuses circular dependencies at deploy time; so does the local host, naming the circle. */
export function refuseCycles(resources: Record<string, TemplateResource>): void {
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
  if (Array.isArray(value)) {
    for (const item of value) collectReferences(item, found);
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [key, item] of Object.entries(value)) {
    if (key === 'Ref') found.add(String(item));
    else if (key === 'Fn::GetAtt') found.add(String(Array.isArray(item) ? item[0] : String(item).split('.')[0]));
    else {
      if (key === 'Fn::Sub') collectSubstituted(Array.isArray(item) ? item[0] : item, found);
      collectReferences(item, found);
    }
  }
}

function collectSubstituted(text: unknown, found: Set<string>): void {
  for (const [, name = ''] of String(text).matchAll(/\$\{([^!}][^}]*)\}/g)) found.add(name.split('.')[0] ?? '');
}
