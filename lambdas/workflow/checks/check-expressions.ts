import { readSyntax } from '../expressions/jsonata-syntax.ts';
import { referencesOf } from '../expressions/references.ts';
import { readTemplate, type Text, textsIn } from '../expressions/template.ts';
import { unusableParts } from './unsupported-jsonata.ts';

/** Something wrong with a definition: where in it, and what to do. */
export interface Problem {
  path: PropertyKey[];
  message: string;
}

/** What an expression can see where it stands: the first word of every reference, and the steps that have run by then. */
export interface Visible {
  roots: readonly ('trigger' | 'enrichment' | 'steps' | 'run')[];
  steps: ReadonlySet<string>;
}

const SHOWN_MAX_CHARACTERS = 200;
const ENRICHED = ['title', 'actor', 'severity', 'links'];

/** Whether every expression of a template is JSONata, and speaks only of what there will be when it is evaluated. */
export function expressionProblems(template: unknown, visible: Visible): Problem[] {
  const problems: Problem[] = [];
  for (const text of textsIn(template)) {
    for (const message of new Set(textProblems(text, visible))) problems.push({ path: text.path, message });
    if (problems.length >= PROBLEMS_MAX) break;
  }
  return problems;
}

/** Of one template: more at once helps nobody. */
const PROBLEMS_MAX = 25;

function textProblems({ text, isName }: Text, visible: Visible): string[] {
  if (isName) return text.includes('{%') ? ['a name cannot be an expression; write it out'] : [];
  const written = readTemplate(text);
  const parts = 'whole' in written ? [{ expression: written.whole }] : written.parts;
  return parts.flatMap((part) => {
    if (typeof part !== 'string') return sourceProblems(part.expression, visible);
    return part.includes('{%') || part.includes('%}')
      ? ['"{%" and "%}" stand around an expression; one is missing']
      : [];
  });
}

function sourceProblems(source: string, visible: Visible): string[] {
  const read = readSyntax(source);
  if ('wrong' in read)
    return [`the expression "${source.slice(0, SHOWN_MAX_CHARACTERS)}" is not JSONata: ${read.wrong}`];
  const unusable = unusableParts(read.tree);
  if (unusable.length > 0) return unusable;
  return referencesOf(read.tree).flatMap((reference) => referenceProblem(reference, visible) ?? []);
}

function referenceProblem([root, name, part]: string[], { roots, steps }: Visible): string | undefined {
  if (root === undefined) return undefined;
  if (!roots.some((each) => each === root)) return `there is no "${root}" here; start with ${roots.join(', ')}`;
  if (name === undefined) return undefined;
  if (root === 'steps') {
    if (!steps.has(name)) return `steps.${name} is not sure to have run before; refer to one that this step needs`;
    if (part !== undefined && part !== 'output')
      return `a step hands on its output: write steps.${name}.output.${part}`;
  }
  if (root === 'enrichment' && !ENRICHED.includes(name)) {
    return `there is no enrichment.${name}; there are ${ENRICHED.join(', ')}`;
  }
  if (root === 'run' && name !== 'id') return `there is no run.${name}; there is run.id`;
  return undefined;
}
