import { type Document, isMap, isNode, isScalar } from 'yaml';
import { CountersignError } from '../run/errors.ts';
import type { Problem } from './checks/check-expressions.ts';
import { schemaProblems } from './checks/check-input.ts';
import { internalToolProblems, workflowProblems } from './checks/check-workflow.ts';
import { type CalledVersions, callsIn, expandWorkflow } from './expand-workflow.ts';
import { parseValidParts } from './parse-valid-parts.ts';
import { ALIASES_EXPLODE, type ReadYaml, readYaml } from './read-yaml.ts';
import { Workflow } from './workflow.ts';

/** A published workflow is one row, read by every run of it. */
export const WORKFLOW_MAX_BYTES = 256 * 1024;
/** The steps of loops and calls repeat the same text, which the row stores compressed. */
const EXPANDED_MAX_BYTES = 1024 * 1024;

export interface FileProblem {
  line: number;
  /** `steps.1.with.sysId`; empty for the whole file. */
  path: string;
  message: string;
}

export type ReadWorkflow =
  | { workflow: Workflow; problemAt: (problem: Problem) => FileProblem }
  | { problems: FileProblem[] };

const PROBLEMS_MAX = 25;

const NOTHING_CALLED: CalledVersions = new Map();

/** A workflow file whose YAML is parsed, which takes most of the time. */
export interface WorkflowFile {
  /** The workflows that it calls, as far as it can be read. */
  calls(): ReturnType<typeof callsIn>;
  /** Expands its loops and calls, and reports all problems at once, each with its line. `called` has the versions of `calls`. */
  read(called?: CalledVersions): ReadWorkflow;
}

export function openWorkflow(text: string): WorkflowFile {
  const opened = parsedFile(text);
  if ('problems' in opened) return { calls: () => [], read: () => opened };
  return {
    calls: () => {
      const file = opened.validParts();
      return file ? callsIn(file) : [];
    },
    read: (called = NOTHING_CALLED) => readParsed(opened, called),
  };
}

export const readWorkflow = (text: string, called?: CalledVersions): ReadWorkflow => openWorkflow(text).read(called);

interface ParsedFile {
  yaml: Extract<ReadYaml, { document: Document }>;
  content: unknown;
  validParts: () => Workflow | undefined;
}

function parsedFile(text: string): ParsedFile | { problems: FileProblem[] } {
  if (Buffer.byteLength(text) > WORKFLOW_MAX_BYTES) return { problems: [TOO_LARGE] };
  const yaml = readYaml(text);
  if ('mistakes' in yaml) {
    return { problems: limited(yaml.mistakes).map(({ line, message }) => inFile(line, cut(message))) };
  }
  const content = contentOf(yaml.document);
  if ('problem' in content) return { problems: [content.problem] };
  // Aliases may have expanded the content.
  if (jsonBytes(content.value) > WORKFLOW_MAX_BYTES) return { problems: [TOO_LARGE] };
  let parts: { valid: Workflow | undefined } | undefined;
  const validParts = () => {
    parts ??= { valid: parseValidParts(content.value) };
    return parts.valid;
  };
  return { yaml, content: content.value, validParts };
}

function readParsed(file: ParsedFile, called: CalledVersions): ReadWorkflow {
  const problems = limited(problemsOf(file, called));
  const placed = ({ path, message }: Problem): FileProblem => ({
    line: lineIn(file.yaml, path),
    path: cut(path.join('.')),
    message: cut(message),
  });
  if (problems.length > 0) return { problems: problems.map(placed).sort((a, b) => a.line - b.line) };
  const { workflow, origins } = expandWorkflow(Workflow.parse(file.content), called);
  if (jsonBytes(workflow) > EXPANDED_MAX_BYTES) return { problems: [TOO_LARGE] };
  return {
    workflow,
    problemAt: ({ path, message }) => placed({ path: pathInFile(workflow, origins, path), message }),
  };
}

const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? '');

function limited<Item>(problems: Item[]): Item[] {
  return problems.slice(0, PROBLEMS_MAX);
}

const MESSAGE_MAX_CHARACTERS = 500;

const cut = (text: string): string =>
  text.length > MESSAGE_MAX_CHARACTERS ? `${text.slice(0, MESSAGE_MAX_CHARACTERS).toWellFormed()}…` : text;

/** Problems found by the schema, and problems of the parts that are valid. */
function problemsOf({ content, validParts }: ParsedFile, called: CalledVersions): Problem[] {
  if (content === null || typeof content !== 'object' || Array.isArray(content)) return [NO_WORKFLOW];
  const schemaIssues = limited(schemaProblems(Workflow, content));
  if (schemaIssues.length === PROBLEMS_MAX) return schemaIssues;
  const valid = validParts();
  const others = valid ? expandedProblems(valid, called) : [];
  return [...schemaIssues, ...others.filter(({ path }) => !schemaIssues.some((known) => isWithin(path, known.path)))];
}

/** Checks the expanded steps, and reports their problems at the steps of the file that they come from. */
function expandedProblems(file: Workflow, called: CalledVersions): Problem[] {
  const { workflow, origins, problems } = expandWorkflow(file, called);
  const found = new Map<string, Problem>();
  for (const problem of workflowProblems(workflow, PROBLEMS_MAX)) {
    const path = pathInFile(workflow, origins, problem.path);
    found.set(`${path.join('.')} ${problem.message}`, { ...problem, path });
  }
  return [...problems, ...internalToolProblems(file), ...found.values()];
}

/** The place in the file of a part of the expanded workflow. */
function pathInFile({ steps }: Workflow, origins: readonly number[], path: PropertyKey[]): PropertyKey[] {
  const [root, index, ...rest] = path;
  if (root !== 'steps' || typeof index !== 'number') return path;
  const isList = steps[index]?.tool === 'forEach.items';
  const field = isList && rest[0] === 'with' ? ['forEach', ...rest.slice(1)] : rest;
  return [root, origins[index] ?? index, ...field];
}

const isWithin = (path: PropertyKey[], outer: PropertyKey[]) => outer.every((part, index) => part === path[index]);

/** Throws if there are problems. */
export function parseWorkflow(text: string, file: string): Workflow {
  const read = readWorkflow(text);
  if ('workflow' in read) return read.workflow;
  throw new CountersignError('WORKFLOW_INVALID', read.problems.map((problem) => problemLine(file, problem)).join('\n'));
}

/** `file:line: path: message`, which editors recognize. */
export function problemLine(file: string, { line, path, message }: FileProblem): string {
  return [`${file}:${line}`, ...(path ? [path] : []), message].join(': ');
}

const inFile = (line: number, message: string): FileProblem => ({ line, path: '', message });

const TOO_LARGE = inFile(1, `a workflow may have at most ${WORKFLOW_MAX_BYTES} bytes; split it`);
const NO_WORKFLOW: Problem = {
  path: [],
  message: 'a workflow needs "name: ..." and "steps: ..."; see workflows/ for examples',
};

/** The YAML library rejects aliases that expand to too many values. */
function contentOf(document: Document): { value: unknown } | { problem: FileProblem } {
  try {
    return { value: document.toJS() };
  } catch {
    return { problem: inFile(1, ALIASES_EXPLODE) };
  }
}

/** The line of the deepest existing part of the path: a missing field is reported at its parent. */
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
