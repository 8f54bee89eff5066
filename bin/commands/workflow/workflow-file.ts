import type { Workflow } from '../../../lambdas/workflow/workflow.ts';
import { read } from '../webhook/send.ts';

export type CheckedFile = { file: string; text: string } & ({ workflow: Workflow } | { problems: FileProblem[] });

interface FileProblem {
  line: number;
  path: string;
  message: string;
  /** `file:line: where: what`, as editors understand it. */
  shown: string;
}

/** Reads a workflow file and checks it here, by the same rules as the server. */
export async function checkWorkflowFile(file: string): Promise<CheckedFile> {
  // Expressions and connectors are heavy; no other command should wait for them.
  const { problemLine, readWorkflow } = await import('../../../lambdas/workflow/parse-workflow.ts');
  const text = read(file).toString('utf8');
  const result = readWorkflow(text);
  if ('workflow' in result) return { file, text, workflow: result.workflow };
  return { file, text, problems: result.problems.map((each) => ({ ...each, shown: problemLine(file, each) })) };
}
