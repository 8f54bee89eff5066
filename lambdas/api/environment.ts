import * as z from 'zod';
import { StageIssuer } from '../entry/oidc-issuer.ts';
import { EVIDENCE_KEYS } from '../evidence/environment.ts';
import { StageFlags } from '../run/settings/flags-schema.ts';
import { RunChangerEnvironment } from '../run-changes/environment.ts';
import { QUEUES } from './queue-names.ts';

/** JSON: the issuers of the stage, with the URL of the API instead of its placeholder. */
const Issuers = z
  .string()
  .transform((text) => z.array(StageIssuer.extend({ issuer: z.string() })).parse(JSON.parse(text)));

export const SignInEnvironment = z.object({ ISSUERS: Issuers });

export const AuthorizerEnvironment = SignInEnvironment.extend({
  RUN_TABLE: z.string(),
  STAGE_KIND: z.enum(['prod', 'staging', 'dev']),
  /** The URL of the API. */
  OWN_URL: z.string(),
});

const DeadLetterQueues = z.array(
  z.object({ name: z.enum(QUEUES), url: z.string(), sourceUrl: z.string(), attempts: z.int() }),
);

export const RedriveEnvironment = z.object({
  RUN_TABLE: z.string(),
  /** JSON: name and URL of each dead-letter queue, and the URL of its source queue. */
  DEAD_LETTER_QUEUES: z.string().transform((text) => DeadLetterQueues.parse(JSON.parse(text))),
});

/** The secret that signs the tokens of sessions. */
const SessionSecretEnvironment = { SESSION_SECRET_ARN: z.string() };

export const ApprovalsApiEnvironment = RunChangerEnvironment.extend({ CURSOR_SECRET_ARN: z.string() });

/** `LIVE_CALLBACK_URL`: lets agents stop canceled commands at once, if the stage has the live feed. */
const CancelingEnvironment = RunChangerEnvironment.extend({ LIVE_CALLBACK_URL: z.url().optional() });

export const ControlEnvironment = CancelingEnvironment.extend({ STAGE: z.string(), ...SessionSecretEnvironment });

export const McpEnvironment = ControlEnvironment.extend({
  ISSUERS: Issuers,
  /** The version of Countersign that is deployed. */
  VERSION: z.string(),
  /** If the stage has a console. */
  CONSOLE_URL: z.string().optional(),
});

export const BulkEnvironment = CancelingEnvironment.extend({ CURSOR_SECRET_ARN: z.string() });

export const ApiEnvironment = z.object({ RUN_TABLE: z.string(), CURSOR_SECRET_ARN: z.string() });

export const PoliciesEnvironment = ApiEnvironment.extend({
  STAGE_KIND: z.enum(['prod', 'staging', 'dev']),
  EVIDENCE_BUCKET: z.string(),
});
/** `LIVE_URL`: the URL of the WebSocket API, if the stage has the live feed. */
export const AccessEnvironment = ApiEnvironment.extend({ LIVE_URL: z.string().optional() });

export const RunsEnvironment = ApiEnvironment.extend({
  EXPORT_BUCKET: z.string(),
  /** Where people see a trace. */
  TRACE_URL: z.string().optional(),
});

export const AgentEnrolEnvironment = z.object({
  RUN_TABLE: z.string(),
  EVIDENCE_KEYS,
  /** Introduces new evidence keys to agents. Absent while the stage has had one key only. */
  INTRODUCE_FUNCTION: z.string().optional(),
  LIVE_URL: z.string().optional(),
});

export const AgentWorkEnvironment = RunChangerEnvironment.extend({
  EXPORT_BUCKET: z.string(),
  SESSION_SECRET_ARN: z.string(),
});

export const SetupEnvironment = ApiEnvironment.extend({
  /** The flags that the stage sets, under those of its tenants. */
  STAGE_FLAGS: StageFlags,
  STAGE_KIND: z.enum(['prod', 'staging', 'dev']),
  OWN_URL: z.url(),
  STAGE: z.string(),
  /** The version of Countersign that is deployed. */
  VERSION: z.string(),
  /** Whether the stage sends its alarms to somebody. */
  HAS_ALARM_RECEIVER: z.enum(['true', 'false']).transform((text) => text === 'true'),
  /** The name of the function that stores credentials. */
  CREDENTIALS_FUNCTION: z.string(),
});

export const DefinitionsEnvironment = ApiEnvironment.extend({
  STAGE_KIND: z.enum(['prod', 'staging', 'dev']),
  /** For this time a widened right to approve does not count. */
  APPROVER_COOL_DOWN_HOURS: z.coerce.number().nonnegative(),
});
