import { didYouMean } from '../../entry/did-you-mean.ts';
import { readSyntax } from '../expressions/jsonata-syntax.ts';
import { referencesOf } from '../expressions/references.ts';
import { readTemplate, type Text, textsIn } from '../expressions/template.ts';
import { unsupportedParts } from './unsupported-jsonata.ts';

/** A mistake in a definition: its place, what is wrong and what to do. */
export interface Problem {
  path: PropertyKey[];
  message: string;
}

/** What an expression may refer to: root names, and the steps that have run by then. */
export interface Visible {
  roots: readonly ('trigger' | 'enrichment' | 'inputs' | 'steps' | 'run' | 'item' | 'index')[];
  steps: ReadonlySet<string>;
  /** The names of the workflow's inputs. */
  inputs?: readonly string[];
}

const SHOWN_MAX_CHARACTERS = 200;
const ENRICHED = ['title', 'actor', 'severity', 'links'];

/** Finds expressions that are not JSONata, or refer to values that will not exist when they are evaluated. */
export function expressionProblems(template: unknown, visible: Visible): Problem[] {
  const problems: Problem[] = [];
  for (const text of textsIn(template)) {
    for (const message of new Set(textProblems(text, visible))) problems.push({ path: text.path, message });
    if (problems.length >= PROBLEMS_MAX) break;
  }
  return problems;
}

/** Per template. */
const PROBLEMS_MAX = 25;

function textProblems({ text, isName }: Text, visible: Visible): string[] {
  if (isName) return text.includes('{%') ? ['a field name cannot be an expression; write the name'] : [];
  const parsed = readTemplate(text);
  const parts = 'whole' in parsed ? [{ expression: parsed.whole }] : parsed.parts;
  return parts.flatMap((part) => {
    if (typeof part !== 'string') return sourceProblems(part.expression, visible);
    return part.includes('{%') || part.includes('%}') ? ['an expression needs both "{%" and "%}"; one is missing'] : [];
  });
}

function sourceProblems(source: string, visible: Visible): string[] {
  const read = readSyntax(source);
  if ('problem' in read)
    return [`the expression "${source.slice(0, SHOWN_MAX_CHARACTERS)}" is not JSONata: ${read.problem}`];
  const unsupported = unsupportedParts(read.tree);
  if (unsupported.length > 0) return unsupported;
  return referencesOf(read.tree).flatMap((reference) => referenceProblem(reference, visible) ?? []);
}

function referenceProblem([root, name, part]: string[], { roots, steps, inputs = [] }: Visible): string | undefined {
  if (root === undefined) return undefined;
  if (!roots.some((each) => each === root))
    return `unknown name "${root}"${didYouMean(root, roots) || `; start with ${roots.join(', ')}`}`;
  if (name === undefined) return undefined;
  if (root === 'steps') {
    if (!steps.has(name))
      return `steps.${name} may not have run before this step; add it to "needs", or refer to another step`;
    if (part !== undefined && part !== 'output')
      return `steps.${name} has only "output": write steps.${name}.output.${part}`;
  }
  if (root === 'inputs' && !inputs.includes(name)) {
    const hint = didYouMean(name, inputs) || (inputs.length > 0 ? `; inputs: ${inputs.join(', ')}` : '');
    return `unknown input "${name}"${hint || '; define it under "inputs"'}`;
  }
  if (root === 'enrichment' && !ENRICHED.includes(name)) {
    return `unknown field enrichment.${name}${didYouMean(name, ENRICHED) || `; fields: ${ENRICHED.join(', ')}`}`;
  }
  if (root === 'run' && name !== 'id') return `unknown field run.${name}; the only field is run.id`;
  return undefined;
}
