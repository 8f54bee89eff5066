import * as z from 'zod';

/** Reads a function's environment by the same schema its construct was built with; every problem is reported at once. */
export function readEnvironment<Schema extends z.ZodType>(schema: Schema): z.output<Schema> {
  const parsed = schema.safeParse(process.env);
  if (!parsed.success) throw new Error(`environment: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

/** Sentences in the log that an alarm waits for; each leads to a heading of the RUNBOOK. */
export const LOGGED = {
  promiseNotKept: 'a promised effect did not happen; RUNBOOK says what to do about each kind',
  policyUndecided: 'policy could not decide, so the answer is no',
  cardNotUpdated: 'a card could not be updated',
  secretNotUsed: 'a signing secret is malformed or too short; it is not used',
};
