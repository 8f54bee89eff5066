import * as z from 'zod';

/** Used in names, paths and keys: lower-case words joined by dashes. */
const Name = z.string().regex(/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/, 'use lower-case letters, digits and single dashes');

const EvidenceKeyConfig = z.strictObject({
  name: Name.max(40),
  /** `p256` is for regions where KMS has no Ed25519 keys. */
  algorithm: z.enum(['ed25519', 'p256']).default('ed25519'),
  /** The day (UTC) on which the next key took over. A key is never taken off the list: what it signed must stay provable. */
  retiredOn: z.iso.date().optional(),
});
type EvidenceKeyConfig = z.infer<typeof EvidenceKeyConfig>;

const isEachNamedOnce = (keys: EvidenceKeyConfig[]) => new Set(keys.map(({ name }) => name)).size === keys.length;

function doesOnlyTheLastSign(keys: EvidenceKeyConfig[]): boolean {
  const days = keys.slice(0, -1).map(({ retiredOn }) => retiredOn ?? '');
  const inOrder = days.every((day, index) => day > (days[index - 1] ?? ''));
  return inOrder && keys.at(-1)?.retiredOn === undefined;
}

/** The functions with reserved concurrency: GitHub's and ServiceNow's webhooks, and decisions from Slack. */
const RESERVING_FUNCTIONS = 3;
/** Lambda leaves at least this much of an account's concurrency unreserved; the API and the sweeper live on it. */
const UNRESERVED_MIN = 100;

/** How many workers leave room for everything else. */
function workersMax({
  accountConcurrency,
  intakeConcurrency,
}: {
  accountConcurrency: number;
  intakeConcurrency: number;
}) {
  if (intakeConcurrency === 0) return Math.floor(accountConcurrency / 2);
  return accountConcurrency - UNRESERVED_MIN - RESERVING_FUNCTIONS * intakeConcurrency;
}

/** The settings of one stage, one entry of `context.stages` in cdk.json. */
const StageSettings = z.strictObject({
  /** `prod` turns on what protects data that cannot be made again. */
  kind: z.enum(['prod', 'staging', 'dev']),
  tenants: z.array(Name.max(40)).min(1).max(20),
  /** Tenants taken off the list above, kept here while their last runs end: the days of their evidence are still closed. */
  formerTenants: z.array(Name.max(40)).max(20).default([]),
  /** How many worker functions may run at once. */
  workerConcurrency: z.int().min(2).max(1000).default(50),
  /** How long runs can be looked at after they were sealed; their evidence stays. Without it, for ever. */
  finishedRunRetentionDays: z.int().min(7).max(36_500).optional(),
  /** How many bundles may be sealed at once. Each takes about half a second. They share what is not reserved. */
  sealConcurrency: z.int().min(2).max(50).default(10),
  /**
   * How many deliveries each of the functions that take in webhooks and Slack decisions handles at once. Lambda reserves
   * this much of the account's concurrency for each, so that busy workers cannot keep deliveries out. 0: no reservation.
   */
  intakeConcurrency: z.int().min(0).max(500).default(25),
  /** Lambda's quota of concurrent executions in this account and region; new accounts have 10. */
  accountConcurrency: z.int().min(10).max(100_000).default(1000),
  /** Who gets a mail when an alarm goes off, and when it is over. Each address confirms once. */
  alarmEmails: z.array(z.email()).max(10).default([]),
  /** A topic that exists, for alarms to be sent to instead of one of this stage. */
  alarmTopicArn: z
    .string()
    .regex(/^arn:[a-z-]+:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}$/, 'the ARN of a standard SNS topic')
    .optional(),
  /**
   * How long a right to approve does not count after it was widened: time for others to notice. 24 hours in prod, none
   * elsewhere. A change keeps the time that was set when it was made.
   */
  approverCoolDownHours: z.number().min(0).max(720).optional(),
  /**
   * Models that steps may ask: ids of foundation models and inference profiles (`amazon.nova-lite-v1:0`, `eu.amazon.…`).
   * A profile needs the models behind it too, those of other regions by their ARN.
   */
  models: z
    .array(z.string().regex(/^[a-z0-9][a-zA-Z0-9.:/_-]{0,200}$/, 'a model id or ARN, without wildcards'))
    .max(20)
    .default([]),
  /** How long nobody, not even an administrator of a prod stage, can delete evidence. */
  evidenceRetentionDays: z.int().min(1).max(36_500),
  /** What is written of finished runs beside the evidence: OCSF lines for a SIEM, artifacts for people. */
  exports: z.array(z.enum(['siem', 'artifacts'])).default(['siem', 'artifacts']),
  /** How long exports are kept. Unlike evidence they hold what people wrote, and can be deleted. */
  exportRetentionDays: z.int().min(1).max(36_500).default(365),
  /** The keys of evidence, oldest first: the last one signs, those before it only prove what they signed. */
  evidenceKeys: z
    .array(EvidenceKeyConfig)
    .min(1)
    .max(10)
    .refine(isEachNamedOnce, 'each key has a name of its own')
    .refine(
      doesOnlyTheLastSign,
      'every key but the last has a day in retiredOn, later than the one before; the last none',
    )
    .default([{ name: 'first', algorithm: 'ed25519' }]),
});

export const StageConfig = StageSettings.superRefine((settings, problems) => {
  const { kind, workerConcurrency, intakeConcurrency, accountConcurrency } = settings;
  if (kind === 'prod' && intakeConcurrency === 0) {
    const message = 'a prod stage reserves concurrency for intake, at least 1; busy workers would keep webhooks out';
    problems.addIssue({ code: 'custom', path: ['intakeConcurrency'], message });
  }
  const most = workersMax(settings);
  if (workerConcurrency > most) {
    const message =
      `with accountConcurrency ${accountConcurrency} and intakeConcurrency ${intakeConcurrency} there is room for ` +
      `${Math.max(0, most)} workers; lower workerConcurrency or intakeConcurrency, or have the quota of Lambda raised`;
    problems.addIssue({ code: 'custom', path: ['workerConcurrency'], message });
  }
});

export type StageConfig = z.infer<typeof StageConfig> & { stage: string };

/** Finds and checks a stage; every problem at once, each with what to do. */
export function readStageConfig(stage: unknown, stages: unknown): StageConfig {
  const name = Name.max(40).safeParse(stage);
  if (!name.success) {
    throw new StageError(
      `"${String(stage)}" is not a stage name, e.g. -c stage=acme-prod:\n${z.prettifyError(name.error)}`,
    );
  }
  const known = z.record(z.string(), z.unknown()).safeParse(stages);
  const settings = known.success ? known.data[name.data] : undefined;
  if (settings === undefined) {
    const names = known.success ? Object.keys(known.data).join(', ') : 'none';
    throw new StageError(`there is no stage "${name.data}"; add it to context.stages in cdk.json (there: ${names})`);
  }
  const config = StageConfig.safeParse(settings);
  if (!config.success) {
    throw new StageError(`stage "${name.data}" in cdk.json, context.stages:\n${z.prettifyError(config.error)}`);
  }
  return { stage: name.data, ...config.data };
}

/** A mistake in settings, to be shown without a stack trace. */
export class StageError extends Error {
  override name = 'StageError';
}
