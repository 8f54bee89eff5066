import * as z from 'zod';
import { Workflow, WorkflowStep } from './workflow.ts';

/** An invalid field gets the value it has when it is missing. */
const lenient = (shape: z.ZodRawShape): z.ZodRawShape =>
  Object.fromEntries(
    Object.entries(shape).map(([name, field]) => {
      const schema = field as z.ZodType;
      return [name, schema.catch(() => schema.safeParse(undefined).data)];
    }),
  );

const Text = z.string().catch('');
const Step = z.object({ ...lenient(WorkflowStep.shape), id: Text, tool: Text });
const LenientWorkflow = z.object({
  ...lenient(Workflow.shape),
  name: Text,
  // Expressions may refer to an input whose definition has a mistake.
  inputs: z.record(z.string(), z.unknown()).optional().catch(undefined),
  steps: z.array(Step.catch(() => Step.parse({}))),
});

/**
 * Parses a workflow without its invalid fields, so that the other fields are checked in the same pass. Returns nothing if
 * `steps` is not a list.
 */
export const parseValidParts = (content: unknown): Workflow | undefined =>
  LenientWorkflow.safeParse(content).data as Workflow | undefined;
