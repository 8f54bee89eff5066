import { type Document, isMap, isNode, isScalar } from 'yaml';
import { CountersignError } from '../run/errors.ts';
import type { Problem } from './checks/check-expressions.ts';
import { schemaProblems } from './checks/check-input.ts';
import { workflowProblems } from './checks/check-workflow.ts';
import { readablePart } from './parse-valid-parts.ts';
import { type ReadYaml, readYaml } from './read-yaml.ts';
import { Workflow } from './workflow.ts';
import { ALIASES_EXPLODE } from './yaml-mistakes.ts';

/** A published workflow is one row, read by every run of it. */
export const WORKFLOW_MAX_BYTES = 256 * 1024;

/** A mistake in a file, at its line. */
export interface FileProblem {
  line: number;
  /** `steps.1.with.sysId`; empty for the file as a whole. */
  path: string;
  message: string;
}

export type ReadWorkflow =
  | { workflow: Workflow; lineOf: (path: PropertyKey[]) => number }
  | { problems: FileProblem[] };

/** More at once helps nobody; the others are told when these are mended. */
const PROBLEMS_MAX = 25;

/** Reads a workflow file; what is wrong with it is reported at once, each with its line and what to do. */
export function readWorkflow(text: string): ReadWorkflow {
  if (Buffer.byteLength(text) > WORKFLOW_MAX_BYTES) return { problems: [TOO_LARGE] };
  const read = readYaml(text);
  if ('mistakes' in read) {
    return { problems: bounded(read.mistakes).map(({ line, message }) => inFile(line, cut(message))) };
  }
  const content = contentOf(read.document);
  if ('problem' in content) return { problems: [content.problem] };
  // Aliases may have made far more of it than was written.
  if (jsonBytes(content.value) > WORKFLOW_MAX_BYTES) return { problems: [TOO_LARGE] };
  const problems = bounded(problemsOf(content.value));
  const lineOf = (path: PropertyKey[]) => lineIn(read, path);
  if (problems.length > 0) {
    return {
      problems: problems
        .map(({ path, message }) => ({ line: lineOf(path), path: cut(path.join('.')), message: cut(message) }))
        .sort((a, b) => a.line - b.line),
    };
  }
  const workflow = Workflow.parse(content.value);
  if (jsonBytes(workflow) > WORKFLOW_MAX_BYTES) return { problems: [TOO_LARGE] };
  return { workflow, lineOf };
}

const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? '');

function bounded<Item>(problems: Item[]): Item[] {
  return problems.slice(0, PROBLEMS_MAX);
}

const SAID_MAX_CHARACTERS = 500;

const cut = (text: string): string =>
  text.length > SAID_MAX_CHARACTERS ? `${text.slice(0, SAID_MAX_CHARACTERS).toWellFormed()}…` : text;

/** What is wrong with its form, and with the rest as far as that can be read all the same. */
function problemsOf(content: unknown): Problem[] {
  if (content === null || typeof content !== 'object' || Array.isArray(content)) return [NO_WORKFLOW];
  const ofForm = bounded(schemaProblems(Workflow, content));
  if (ofForm.length === PROBLEMS_MAX) return ofForm;
  const readable = readablePart(content);
  const others = readable ? workflowProblems(readable, PROBLEMS_MAX) : [];
  return [...ofForm, ...others.filter(({ path }) => !ofForm.some((known) => isWithin(path, known.path)))];
}

const isWithin = (path: PropertyKey[], outer: PropertyKey[]) => outer.every((part, index) => part === path[index]);

/** The same for callers that cannot go on without a workflow. */
export function parseWorkflow(text: string, file: string): Workflow {
  const read = readWorkflow(text);
  if ('workflow' in read) return read.workflow;
  throw new CountersignError('WORKFLOW_INVALID', read.problems.map((problem) => problemLine(file, problem)).join('\n'));
}

/** As editors and terminals understand it: `file:line: where: what`. */
export function problemLine(file: string, { line, path, message }: FileProblem): string {
  return [`${file}:${line}`, ...(path ? [path] : []), message].join(': ');
}

const inFile = (line: number, message: string): FileProblem => ({ line, path: '', message });

const TOO_LARGE = inFile(1, `a workflow may have ${WORKFLOW_MAX_BYTES} bytes; split it into several`);
const NO_WORKFLOW: Problem = {
  path: [],
  message: 'a workflow is "name: ..." and "steps: ..."; see workflows/ for some',
};

/** The reader refuses aliases that multiply beyond reason: a mistake in the file like any other. */
function contentOf(document: Document): { value: unknown } | { problem: FileProblem } {
  try {
    return { value: document.toJS() };
  } catch {
    return { problem: inFile(1, ALIASES_EXPLODE) };
  }
}

/** The line of the deepest part of the path that is in the file: a missing field is reported at its parent. */
function lineIn({ document, lineAt }: Extract<ReadYaml, { document: Document }>, path: PropertyKey[]): number {
  for (let depth = path.length; depth > 0; depth -= 1) {
    const parent = depth === 1 ? document.contents : document.getIn(path.slice(0, depth - 1), true);
    const name = path[depth - 1];
    const key = isMap(parent) && parent.items.find((item) => isScalar(item.key) && item.key.value === name)?.key;
    const node = key || document.getIn(path.slice(0, depth), true);
    if (isNode(node) && node.range) return lineAt(node.range[0]);
  }
  return 1;
}
