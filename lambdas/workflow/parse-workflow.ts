import { isNode, LineCounter, parseDocument } from 'yaml';
import { toolNames } from '../connectors/registry.ts';
import { CountersignError } from '../run/errors.ts';
import { expressionsIn, syntaxError } from './expressions.ts';
import { Workflow } from './workflow.ts';

interface Problem {
  path: PropertyKey[];
  message: string;
}

/** Reads a workflow file; everything wrong with it is reported at once, each with its line and what to do. */
export function parseWorkflow(text: string, file: string): Workflow {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  if (document.errors.length > 0) {
    throw invalid(document.errors.map((error) => `${file}:${error.linePos?.[0].line ?? 1}: ${error.message}`));
  }
  const parsed = Workflow.safeParse(document.toJS());
  const problems: Problem[] = parsed.success ? check(parsed.data) : parsed.error.issues;
  if (!parsed.success || problems.length > 0) {
    throw invalid(problems.map(({ path, message }) => `${file}:${lineOf(path)}: ${path.join('.')}: ${message}`));
  }
  return parsed.data;

  /** The line of the deepest part of the path that is in the file: a missing field is reported at its parent. */
  function lineOf(path: PropertyKey[]): number {
    for (let depth = path.length; depth >= 0; depth -= 1) {
      const node = depth === 0 ? document.contents : document.getIn(path.slice(0, depth), true);
      if (isNode(node) && node.range) return lines.linePos(node.range[0]).line;
    }
    return 1;
  }
}

function check(workflow: Workflow): Problem[] {
  const seen = new Set<string>();
  return workflow.steps.flatMap((step, index) => {
    const problems: Problem[] = [];
    const at = (path: PropertyKey[], message: string) => problems.push({ path: ['steps', index, ...path], message });
    if (seen.has(step.id)) at(['id'], `another step is called "${step.id}"; give each its own id`);
    if (!toolNames().includes(step.tool)) {
      at(['tool'], `there is no tool "${step.tool}"; use one of ${toolNames().join(', ')}`);
    }
    for (const source of expressionsIn([step.with, step.when])) {
      const wrong = syntaxError(source);
      if (wrong) at(['with'], `the expression "${source.trim()}" is not JSONata: ${wrong}`);
      for (const [, id] of source.matchAll(/\bsteps\.([a-z][a-z0-9_]*)/g)) {
        if (id && !seen.has(id)) at(['with'], `steps.${id} is not an earlier step; refer to one that runs before`);
      }
    }
    seen.add(step.id);
    return problems;
  });
}

function invalid(problems: string[]): CountersignError {
  return new CountersignError('WORKFLOW_INVALID', problems.join('\n'));
}
