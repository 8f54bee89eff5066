import * as z from 'zod';
import { Workflow, WorkflowStep } from './workflow.ts';

/** Of a field that cannot be read, what it is when it is left out. */
const forgiving = (shape: z.ZodRawShape): z.ZodRawShape =>
  Object.fromEntries(
    Object.entries(shape).map(([name, field]) => {
      const schema = field as z.ZodType;
      return [name, schema.catch(() => schema.safeParse(undefined).data)];
    }),
  );

const Text = z.string().catch('');
const Step = z.object({ ...forgiving(WorkflowStep.shape), id: Text, tool: Text });
const Readable = z.object({
  ...forgiving(Workflow.shape),
  name: Text,
  steps: z.array(Step.catch(() => Step.parse({}))),
});

/**
 * What can be read of a file whose parts cannot all be, so that the rest is checked in the same go: what is wrong is left
 * out, names are taken as they are. Nothing, if not even its steps can be told apart.
 */
export const readablePart = (content: unknown): Workflow | undefined =>
  Readable.safeParse(content).data as Workflow | undefined;
