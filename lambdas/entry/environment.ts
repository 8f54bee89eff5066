import * as z from 'zod';
import type { AwsCredentials } from './sign-aws-request.ts';

/**
 * Parses a function's environment with the schema that its construct uses. Reports all problems at once. Without `jitless`, zod
 * would first generate and compile code for a schema that is used once: 5 % of the start of a function.
 */
export function readEnvironment<Schema extends z.ZodType>(schema: Schema): z.output<Schema> {
  const parsed = schema.safeParse(process.env, { jitless: true });
  if (!parsed.success) throw new Error(`environment: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

/** The variables that Lambda sets for the AWS SDKs. The endpoints are set where AWS is emulated, as on the local host. */
export const AwsEnvironment = z.object({
  AWS_REGION: z.string(),
  AWS_ACCESS_KEY_ID: z.string(),
  AWS_SECRET_ACCESS_KEY: z.string(),
  AWS_SESSION_TOKEN: z.string().optional(),
  AWS_ENDPOINT_URL: z.url().optional(),
  AWS_ENDPOINT_URL_BEDROCK_RUNTIME: z.url().optional(),
});
export type AwsEnvironment = z.infer<typeof AwsEnvironment>;

/** The credentials of the function's role. */
export const credentialsOf = (aws: AwsEnvironment): AwsCredentials => ({
  accessKeyId: aws.AWS_ACCESS_KEY_ID,
  secretAccessKey: aws.AWS_SECRET_ACCESS_KEY,
  ...(aws.AWS_SESSION_TOKEN && { sessionToken: aws.AWS_SESSION_TOKEN }),
});

/** Log messages that raise an alarm. Each alarm names a heading of the RUNBOOK. */
export const LOGGED = {
  outboxEntryStuck: 'an outbox entry was not completed; the RUNBOOK explains each reason',
  policyUndecided: 'policy could not decide, so the call is denied',
  cardNotUpdated: 'a card could not be updated',
  scheduleFailed: 'a schedule could not start its run',
  secretNotUsed: 'a signing secret is malformed or too short; it is not used',
};
