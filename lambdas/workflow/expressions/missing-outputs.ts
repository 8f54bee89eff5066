import type { WorkflowStep } from '../workflow.ts';
import { referencesIn } from './references.ts';
import { readTemplate, textsIn } from './template.ts';

/** The steps whose output a step's input or condition needs and that have not run; `steps` where it may be any of them. */
export function missingOutputs({ with: input, when }: WorkflowStep, hasRun: (id: string) => boolean): string[] {
  const sources = [...textsIn(input), ...textsIn(when)].flatMap(({ text, isName }) => (isName ? [] : sourcesIn(text)));
  const needs = sources.flatMap(referencesIn).flatMap(([root, id]) => {
    if (root !== undefined && root !== 'steps') return [];
    return id === undefined ? ['steps'] : hasRun(id) ? [] : [id];
  });
  return [...new Set(needs)];
}

function sourcesIn(text: string): string[] {
  const written = readTemplate(text);
  if ('whole' in written) return [written.whole];
  return written.parts.flatMap((part) => (typeof part === 'string' ? [] : [part.expression]));
}
