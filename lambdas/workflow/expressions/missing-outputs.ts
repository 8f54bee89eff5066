import { stepsRead } from '../step-scope.ts';
import type { WorkflowStep } from '../workflow.ts';
import { referencesIn } from './references.ts';
import { readTemplate, textsIn } from './template.ts';

/** The steps that have not run but whose output this step uses. `steps` if it may use any step. */
export function missingOutputs({ with: input, when, scope }: WorkflowStep, hasRun: (id: string) => boolean): string[] {
  const sources = [...textsIn(input), ...textsIn(when)].flatMap(({ text, isName }) => (isName ? [] : sourcesIn(text)));
  const read = sources.flatMap(referencesIn).flatMap((reference) => stepsRead(reference, scope));
  const needs = [...read, ...(scope ? [scope.leader] : [])].flatMap((id) =>
    id === undefined ? ['steps'] : hasRun(id) ? [] : [id],
  );
  return [...new Set(needs)];
}

function sourcesIn(text: string): string[] {
  const parsed = readTemplate(text);
  if ('whole' in parsed) return [parsed.whole];
  return parsed.parts.flatMap((part) => (typeof part === 'string' ? [] : [part.expression]));
}
