import { type Alias, type Document, isMap, isNode, isScalar, LineCounter, parseDocument, visit } from 'yaml';
import { CountersignError } from '../run/errors.ts';
import type { Problem } from './check-expressions.ts';
import { schemaProblems } from './check-input.ts';
import { workflowProblems } from './check-workflow.ts';
import { readablePart } from './readable-part.ts';
import { Workflow } from './workflow.ts';
import { ALIASES_EXPLODE, noAnchor, yamlMistake } from './yaml-mistakes.ts';

/** A published workflow is one row, read by every run of it. */
export const WORKFLOW_MAX_BYTES = 256 * 1024;

/** A mistake in a file, at its line. */
export interface FileProblem {
  line: number;
  /** `steps.1.with.sysId`; empty for the file as a whole. */
  path: string;
  message: string;
}

export type ReadWorkflow = { workflow: Workflow } | { problems: FileProblem[] };

/** Reads a workflow file; everything wrong with it is reported at once, each with its line and what to do. */
export function readWorkflow(text: string): ReadWorkflow {
  if (Buffer.byteLength(text) > WORKFLOW_MAX_BYTES) return { problems: [TOO_LARGE] };
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, logLevel: 'error', prettyErrors: false });
  const mistakes = [
    ...document.errors.map((error) => inFile(lines.linePos(error.pos[0]).line, yamlMistake(error))),
    ...strayAliases(document).map(({ source, range }) => inFile(lines.linePos(range?.[0] ?? 0).line, noAnchor(source))),
  ];
  // What follows a mistake on the same line mostly follows from it.
  if (mistakes.length > 0) {
    return {
      problems: mistakes.filter(({ line }, index) => mistakes.findIndex((each) => each.line === line) === index),
    };
  }
  const content = contentOf(document);
  if ('problem' in content) return { problems: [content.problem] };
  const problems = problemsOf(content.value);
  if (problems.length > 0) {
    return {
      problems: problems
        .map(({ path, message }) => ({ line: lineOf(document, lines, path), path: path.join('.'), message }))
        .sort((a, b) => a.line - b.line),
    };
  }
  const workflow = Workflow.parse(content.value);
  // Aliases may have made far more of it than was written.
  if (Buffer.byteLength(JSON.stringify(workflow)) > WORKFLOW_MAX_BYTES) return { problems: [TOO_LARGE] };
  return { workflow };
}

/** What is wrong with its form, and with the rest as far as that can be read all the same. */
function problemsOf(content: unknown): Problem[] {
  if (content === null || typeof content !== 'object' || Array.isArray(content)) return [NO_WORKFLOW];
  const ofForm = schemaProblems(Workflow, content);
  const readable = readablePart(content);
  const others = readable ? workflowProblems(readable) : [];
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

/** Where something is repeated that has no name before. */
function strayAliases(document: Document): Alias[] {
  const stray: Alias[] = [];
  visit(document, {
    Alias(_key, alias) {
      if (!alias.resolve(document)) stray.push(alias);
    },
  });
  return stray;
}

/** The reader refuses aliases that multiply beyond reason: a mistake in the file like any other. */
function contentOf(document: Document): { value: unknown } | { problem: FileProblem } {
  try {
    return { value: document.toJS() };
  } catch {
    return { problem: inFile(1, ALIASES_EXPLODE) };
  }
}

/** The line of the deepest part of the path that is in the file: a missing field is reported at its parent. */
function lineOf(document: Document, lines: LineCounter, path: PropertyKey[]): number {
  for (let depth = path.length; depth > 0; depth -= 1) {
    const parent = depth === 1 ? document.contents : document.getIn(path.slice(0, depth - 1), true);
    const name = path[depth - 1];
    const key = isMap(parent) && parent.items.find((item) => isScalar(item.key) && item.key.value === name)?.key;
    const node = key || document.getIn(path.slice(0, depth), true);
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line;
  }
  return 1;
}
