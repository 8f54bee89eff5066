import * as z from 'zod';
import { RunChangerEnvironment } from '../run-changes/environment.ts';

export const AuthorizerEnvironment = z.object({ RUN_TABLE: z.string() });

const DeadLetterQueues = z.array(z.object({ name: z.string(), url: z.string(), sourceUrl: z.string() }));

export const RedriveEnvironment = z.object({
  /** JSON: name and URL of each dead-letter queue, and the URL of its source queue. */
  DEAD_LETTER_QUEUES: z.string().transform((text) => DeadLetterQueues.parse(JSON.parse(text))),
});

export const ApprovalsApiEnvironment = RunChangerEnvironment.extend({ CURSOR_SECRET_ARN: z.string() });

export const ApiEnvironment = z.object({ RUN_TABLE: z.string(), CURSOR_SECRET_ARN: z.string() });

export const SetupEnvironment = ApiEnvironment.extend({
  STAGE_KIND: z.enum(['prod', 'staging', 'dev']),
  OWN_URL: z.url(),
  /** The name of the function that stores credentials. */
  CREDENTIALS_FUNCTION: z.string(),
});

export const DefinitionsEnvironment = ApiEnvironment.extend({
  STAGE_KIND: z.enum(['prod', 'staging', 'dev']),
  /** For this time a widened right to approve does not count. */
  APPROVER_COOL_DOWN_HOURS: z.coerce.number().nonnegative(),
});
