import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import { CountersignError } from '../run/errors.ts';
import type { Problem } from './check-expressions.ts';
import { unknownField } from './check-input.ts';
import { workflowProblems } from './check-workflow.ts';
import { Workflow } from './workflow.ts';

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
  const document = parseDocument(text, { lineCounter: lines, logLevel: 'error' });
  if (document.errors.length > 0) {
    const problems = document.errors.map(({ linePos, message }) => inFile(linePos?.[0].line ?? 1, message));
    return { problems };
  }
  const content = contentOf(document);
  if ('problem' in content) return { problems: [content.problem] };
  const parsed = Workflow.safeParse(content.value);
  const problems = parsed.success ? workflowProblems(parsed.data) : parsed.error.issues.flatMap(problemsOf);
  if (!parsed.success || problems.length > 0) {
    return {
      problems: problems
        .map(({ path, message }) => ({ line: lineOf(document, lines, path), path: path.join('.'), message }))
        .sort((a, b) => a.line - b.line),
    };
  }
  // Aliases may have made far more of it than was written.
  if (Buffer.byteLength(JSON.stringify(parsed.data)) > WORKFLOW_MAX_BYTES) return { problems: [TOO_LARGE] };
  return { workflow: parsed.data };
}

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

const inFile = (line: number, message: string): FileProblem => ({ line, path: '', message: message.trim() });

const TOO_LARGE = inFile(1, `a workflow may have ${WORKFLOW_MAX_BYTES} bytes; split it into several`);

/** The reader refuses aliases that multiply beyond reason: a mistake in the file like any other. */
function contentOf(document: Document): { value: unknown } | { problem: FileProblem } {
  try {
    return { value: document.toJS() };
  } catch (error) {
    return { problem: inFile(1, error instanceof Error ? error.message : String(error)) };
  }
}

function problemsOf(issue: { code: string; path: PropertyKey[]; message: string; keys?: string[] }): Problem[] {
  if (issue.code !== 'unrecognized_keys' || !issue.keys) return [issue];
  return issue.keys.map((key) => ({ path: [...issue.path, key], message: unknownField(key) }));
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
