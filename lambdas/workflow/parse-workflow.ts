import { type Document, isNode, LineCounter, parseDocument } from 'yaml';
import { toolNames } from '../connectors/registry.ts';
import { CountersignError } from '../run/errors.ts';
import { expressionsIn, syntaxError } from './expressions.ts';
import { findCycle, needsOf } from './order.ts';
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
  const parsed = Workflow.safeParse(contentOf(document, file));
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

/** The reader refuses aliases that multiply beyond reason: a mistake in the file like any other. */
function contentOf(document: Document, file: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    throw invalid([`${file}:1: ${error instanceof Error ? error.message : String(error)}`]);
  }
}

function check(workflow: Workflow): Problem[] {
  const problems = checkSteps(workflow);
  if (problems.length > 0) return problems;
  return findCycle(workflow).map((id) => {
    const index = workflow.steps.findIndex((step) => step.id === id);
    const message = `"${id}" needs itself through others; take one need out of the circle`;
    return { path: ['steps', index, 'needs'], message };
  });
}

function checkSteps(workflow: Workflow): Problem[] {
  const ids = workflow.steps.map(({ id }) => id);
  return workflow.steps.flatMap((step, index) => {
    const problems: Problem[] = [];
    const at = (path: PropertyKey[], message: string) => problems.push({ path: ['steps', index, ...path], message });
    if (ids.indexOf(step.id) < index) at(['id'], `another step is called "${step.id}"; give each its own id`);
    if (!toolNames().includes(step.tool)) {
      at(['tool'], `there is no tool "${step.tool}"; use one of ${toolNames().join(', ')}`);
    }
    for (const need of step.needs ?? []) {
      if (!ids.includes(need) || need === step.id)
        at(['needs'], `"${need}" is no other step; there are ${ids.join(', ')}`);
    }
    const before = reachable(workflow, index);
    for (const field of ['with', 'when'] as const) {
      for (const source of expressionsIn(step[field])) {
        const wrong = syntaxError(source);
        if (wrong) at([field], `the expression "${source.trim()}" is not JSONata: ${wrong}`);
        for (const [, id] of source.matchAll(/\bsteps\.([a-z][a-z0-9_]*)/g)) {
          if (id && !before.has(id))
            at([field], `steps.${id} is not sure to have run before; refer to one that this step needs`);
        }
      }
    }
    return problems;
  });
}

/** The ids of all steps that have surely run before this one. */
function reachable(workflow: Workflow, index: number): Set<string> {
  const found = new Set<number>();
  const open = needsOf(workflow, index);
  for (let need = open.pop(); need !== undefined; need = open.pop()) {
    if (need < 0 || found.has(need)) continue;
    found.add(need);
    open.push(...needsOf(workflow, need));
  }
  return new Set([...found].map((need) => workflow.steps[need]?.id ?? ''));
}

function invalid(problems: string[]): CountersignError {
  return new CountersignError('WORKFLOW_INVALID', problems.join('\n'));
}
