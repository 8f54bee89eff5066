import { dirname, join } from 'node:path';
import type { FileProblem } from '../../../lambdas/workflow/parse-workflow.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, Failure } from '../failure.ts';
import { POLICIES_OPTION, readPolicyFolder } from '../policy/policy-folder.ts';
import { readFile } from '../read-file.ts';
import type { WorkflowTest } from './test-file.ts';
import type { Difference, TriedCase } from './try-case.ts';
import { checkWorkflowFile, printChecked } from './validate.ts';

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

export const workflowTest: Command = {
  name: 'workflow test',
  args: ['FILE…'],
  description: 'test workflows with cases from files, offline',
  details: [
    'Each FILE names a workflow and has cases:',
    '  workflow: label-new-issue.yaml',
    '  cases:',
    '    - name: a new issue gets a label',
    '      event: ../events/github-issue-opened.json     # or inputs: { … }',
    '      targets: { label: { before: { triage: false } } }   # what the targets say',
    '      expect: { outcome: runs, steps: { label: { fields: { labels: [triage] } } } }',
    'Only what a case expects is compared. Nothing is read or written. `workflow init` makes such a file.',
    'Exit code: 1 if a case fails.',
  ].join('\n'),
  offline: true,
  options: POLICIES_OPTION,
  async run(call) {
    const tried: { file: string; cases: TriedCase[] }[] = [];
    for (const file of call.args) {
      const cases = await tryFile(call, file);
      if (!cases) return EXIT.failed;
      tried.push({ file, cases });
      if (!call.json) printCases(call, file, cases);
    }
    const all = tried.flatMap(({ cases }) => cases);
    const failed = all.filter(({ wrong }) => wrong.length > 0).length;
    if (call.json) call.printJson({ files: tried.map(({ file, cases }) => ({ file, cases: cases.map(inJson) })) });
    else call.terminal.print(`${all.length} cases, ${failed === 0 ? 'all passed' : `${failed} failed`}`);
    return failed > 0 ? EXIT.failed : EXIT.ok;
  },
};

const inJson = ({ name, wrong }: TriedCase) => ({ name, passed: wrong.length === 0, wrong });

/** Nothing if the workflow has problems, which are printed. */
async function tryFile(call: Call, file: string): Promise<TriedCase[] | undefined> {
  const test = await readTest(file);
  const checked = await checkWorkflowFile(join(dirname(file), test.workflow));
  if ('problems' in checked) {
    printChecked(call, checked);
    return undefined;
  }
  // Loaded here: policies and expressions would slow down the start of every other command.
  const { wirePolicy } = await import('../../../lambdas/policy/policy.wiring.ts');
  const { wireExpressions } = await import('../../../lambdas/workflow/expressions/expressions.wiring.ts');
  const { tryCase } = await import('./try-case.ts');
  const folder =
    call.option('policies') ?? (test.policies === undefined ? undefined : join(dirname(file), test.policies));
  const policies = readPolicyFolder(folder);
  const policy = wirePolicy({ policies: async () => policies }, { log: SILENT });
  const expressions = wireExpressions();
  try {
    const tried: TriedCase[] = [];
    for (const each of test.cases) tried.push(await tryCase({ policy, expressions }, file, checked.workflow, each));
    return tried;
  } finally {
    expressions.stop();
  }
}

async function readTest(file: string): Promise<WorkflowTest> {
  const { parse } = await import('yaml');
  const { WorkflowTest } = await import('./test-file.ts');
  const { schemaProblems } = await import('../../../lambdas/workflow/checks/check-input.ts');
  let content: unknown;
  try {
    content = parse(readFile(file).toString('utf8'));
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    throw new Failure(EXIT.usage, `${file}: ${(cause as Error).message}`, { cause });
  }
  const problems = schemaProblems(WorkflowTest, content).map(
    ({ path, message }): Pick<FileProblem, 'path' | 'message'> => ({ path: path.join('.'), message }),
  );
  if (problems.length === 0) return WorkflowTest.parse(content);
  throw new Failure(
    EXIT.usage,
    problems.map(({ path, message }) => `${file}: ${path ? `${path}: ` : ''}${message}`).join('\n'),
  );
}

function printCases({ terminal }: Call, file: string, cases: readonly TriedCase[]): void {
  terminal.print(terminal.paint('strong', file));
  for (const { name, wrong } of cases) {
    const mark = wrong.length > 0 ? terminal.paint('bad', 'FAIL') : terminal.paint('good', 'ok  ');
    terminal.print(`  ${mark}  ${printable(name)}`);
    for (const each of wrong) for (const line of differenceLines(each)) terminal.print(`        ${printable(line)}`);
  }
}

const differenceLines = ({ path, expected, got }: Difference): string[] => [
  `${path}`,
  `  - expected ${JSON.stringify(expected)}`,
  `  + got      ${JSON.stringify(got) ?? 'nothing'}`,
];
