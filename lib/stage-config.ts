import * as z from 'zod';
import { didYouMean } from '../lambdas/entry/did-you-mean.ts';
import { ISSUERS_MAX, OWN_URL, repeatedIssuer, StageIssuer } from '../lambdas/entry/oidc-issuer.ts';
import { Flags } from '../lambdas/run/settings/flags-schema.ts';
import { contentSecurityPolicy, issuerOrigins, POLICY_MAX_CHARACTERS } from './console/content-security-policy.ts';

/** The stage that the local host runs. */
export const LOCAL_STAGE = 'local';

/** Part of resource names, paths and keys. */
const Name = z.string().regex(/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/, 'use lower-case letters, digits and single dashes');

const EvidenceKeyConfig = z.strictObject({
  name: Name.max(40),
  /** `p256` is for regions where KMS has no Ed25519 keys. */
  algorithm: z.enum(['ed25519', 'p256']).default('ed25519'),
  /** The day (UTC) on which the next key replaced this one. Never remove a key: its signatures must remain verifiable. */
  retiredOn: z.iso.date().optional(),
});
type EvidenceKeyConfig = z.infer<typeof EvidenceKeyConfig>;

const areNamesUnique = (keys: EvidenceKeyConfig[]) => new Set(keys.map(({ name }) => name)).size === keys.length;

function isOnlyLastKeyActive(keys: EvidenceKeyConfig[]): boolean {
  const days = keys.slice(0, -1).map(({ retiredOn }) => retiredOn ?? '');
  const inOrder = days.every((day, index) => day > (days[index - 1] ?? ''));
  return inOrder && keys.at(-1)?.retiredOn === undefined;
}

/** Functions with reserved concurrency: the GitHub, ServiceNow and generic webhooks, Slack decisions, and agents. */
export const RESERVING_FUNCTIONS = 5;
/** Lambda keeps at least this much of an account's concurrency unreserved. The API and the sweeper use it. */
const UNRESERVED_MIN = 100;

/** The highest worker concurrency that leaves enough for the other functions. */
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

/** A name in DNS, without a dot at its end. */
const DomainName = z
  .string()
  .max(253)
  .regex(
    /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/,
    'a domain name in lower case, e.g. countersign.example.com',
  );
const idOf = (prefix: string) =>
  z.string().regex(new RegExp(`^${prefix}-[0-9a-f]{8,17}$`), `an id that begins with ${prefix}-`);

const DomainConfig = z.strictObject({
  name: DomainName,
  certificateArn: z
    .string()
    .regex(
      /^arn:aws:acm:us-east-1:\d{12}:certificate\/[0-9a-f-]{36}$/,
      'the ARN of a certificate in us-east-1, where CloudFront reads certificates of all regions',
    ),
  /** Creates the records of the name. Without it, create them yourself: they point to the stack output `DomainTarget`. */
  hostedZone: z
    .strictObject({ id: z.string().regex(/^Z[A-Z0-9]{1,31}$/, 'the id of a Route 53 hosted zone'), name: DomainName })
    .optional(),
});

const FirewallConfig = z.strictObject({
  /** The output of the part `firewall` of the stage, or a web ACL of your own. */
  webAclArn: z
    .string()
    .regex(
      /^arn:aws:wafv2:us-east-1:\d{12}:global\/webacl\/[\w-]{1,128}\/[0-9a-f-]{36}$/,
      'the ARN of a web ACL with the scope CLOUDFRONT, which is always in us-east-1',
    )
    .optional(),
  /** Of the web ACL that the part `firewall` creates. Agents and webhook senders often share an address. */
  requestsPerAddressIn5Minutes: z.int().min(100).max(2_000_000).default(20_000),
});

/** An endpoint has at most one subnet in each availability zone, and no region has more zones. */
const ENDPOINT_SUBNETS_MAX = 6;

const VpcConfig = z.strictObject({
  id: idOf('vpc'),
  /** With a route to the systems that workflows call. In several availability zones, so that one may fail. */
  subnetIds: z.array(idOf('subnet')).min(1).max(16),
  securityGroupIds: z.array(idOf('sg')).min(1).max(5),
  /** Creates endpoints for the AWS services that functions call, so that these calls do not leave the VPC. */
  endpoints: z.boolean().default(false),
  /** Of the subnets; they get the routes to the endpoints of DynamoDB and S3. Required with `endpoints`. */
  routeTableIds: z.array(idOf('rtb')).max(16).default([]),
});
export type VpcConfig = z.infer<typeof VpcConfig>;

/** The environment of a function has at most 4 KB. */
const ISSUERS_MAX_CHARACTERS = 2_500;

/** An OTLP/HTTP endpoint: `https://collector.example.com/v1/traces`. */
const TraceCollector = z.strictObject({
  url: z
    .url({ protocol: /^https?$/ })
    .max(500)
    // `fetch` refuses such a URL, and everybody who reads the template would see the password.
    .refine((url) => !/^[^/]+\/\/[^/]*@/.test(url), 'a URL without user and password; use secretHeaders'),
  /** Creates a secret, in which operators enter headers with the credential of the collector, as JSON: `{"x-api-key": "…"}`. */
  secretHeaders: z.boolean().default(false),
});

/** The settings of one stage, one entry of `context.stages` in cdk.json. */
const StageSettings = z.strictObject({
  /** `prod` turns on protection of data that cannot be recreated. */
  kind: z.enum(['prod', 'staging', 'dev']),
  tenants: z.array(Name.max(40)).min(1).max(20),
  /** Tenants removed from the list above, listed here until their last runs have ended and their evidence logs are closed. */
  formerTenants: z.array(Name.max(40)).max(20).default([]),
  /** OIDC issuers that sign people in, each for one tenant. Tenants that share an issuer have different audiences. */
  issuers: z
    .array(StageIssuer)
    .max(ISSUERS_MAX)
    .refine(
      (issuers) => JSON.stringify(issuers).length <= ISSUERS_MAX_CHARACTERS,
      `all issuers together have at most ${ISSUERS_MAX_CHARACTERS} characters; the settings of tenants can name more`,
    )
    .default([]),
  /** Parts of the product that are on or off for tenants that do not set them: `countersign settings set features.NAME=true`. */
  features: Flags.default({}),
  /** Hosts the console in the browser. Without it, people use Slack, the command line and the API. */
  console: z.boolean().default(true),
  /** Where the traces of ended runs are sent. `xray` needs Transaction Search, which the account must have enabled. */
  traces: z.union([z.enum(['off', 'xray']), TraceCollector]).default('off'),
  /** Where people see a trace; `{traceId}` is replaced. Default: for `xray` the page of CloudWatch. */
  traceUrl: z
    .string()
    .max(500)
    .regex(/^(https:\/\/|\/).*\{traceId\}/, 'an https URL with {traceId}')
    .optional(),
  /** A domain name of your own for the console, the API, webhooks and the live feed. */
  domain: DomainConfig.optional(),
  /** AWS WAF in front of CloudFront. Functions refuse requests that did not pass it. */
  firewall: FirewallConfig.optional(),
  /** Runs the functions in your VPC, e.g. to reach systems that have no public address. */
  vpc: VpcConfig.optional(),
  /** The minimum level of log lines. `DEBUG`: also output of commands, and two lines of Lambda for each invocation. Metrics are always logged. */
  logLevel: z.enum(['DEBUG', 'INFO', 'WARN', 'ERROR']).default('INFO'),
  /** Maximum number of concurrent workers. */
  workerConcurrency: z.int().min(2).max(1000).default(50),
  /** How long the rows of a run remain after it was sealed. Evidence and receipts stay. Default: for ever. */
  finishedRunRetentionDays: z.int().min(7).max(36_500).optional(),
  /** Maximum number of concurrent seals; each seals up to 10 runs in about half a second. They use unreserved concurrency. */
  sealConcurrency: z.int().min(2).max(50).default(10),
  /**
   * How long a finished run waits for others to be sealed with it; up to 10 share a signature and an object. 0: not at all. The sweeper sends
   * what is not sealed after 30 s again.
   */
  sealWindowSeconds: z.int().min(0).max(20).default(20),
  /**
   * Concurrency that Lambda reserves for each of the five functions that receive webhooks, Slack decisions and requests of agents, so that busy
   * workers cannot block deliveries. 0: no reservation.
   */
  intakeConcurrency: z.int().min(0).max(500).default(25),
  /** Lambda's quota of concurrent executions in this account and region; new accounts have 10. */
  accountConcurrency: z.int().min(10).max(100_000).default(1000),
  /** Addresses that get an email when an alarm starts and ends. Each must confirm the subscription once. */
  alarmEmails: z.array(z.email()).max(10).default([]),
  /** HTTPS endpoints that get alarms, e.g. of a service that pages people. Each must confirm the subscription once. */
  alarmUrls: z
    .array(z.url({ protocol: /^https$/ }).max(200))
    .max(5)
    .default([]),
  /** Where people find RUNBOOK.md: descriptions of alarms link its headings. */
  runbookUrl: z.string().min(1).max(300).default('RUNBOOK.md'),
  /** An existing SNS topic for alarms, instead of one created by the stage. */
  alarmTopicArn: z
    .string()
    .regex(/^arn:[a-z-]+:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}$/, 'the ARN of a standard SNS topic')
    .optional(),
  /**
   * How long a new or extended right to approve does not count, so that others can notice it. Default: 24 hours in prod,
   * 0 elsewhere. A change of this setting does not affect rights that were granted before.
   */
  approverCoolDownHours: z.number().min(0).max(720).optional(),
  /**
   * Models that steps may invoke: ids of foundation models and inference profiles (`amazon.nova-lite-v1:0`, `eu.amazon.…`).
   * An inference profile also needs the models that it uses, those in other regions as ARNs.
   */
  models: z
    .array(z.string().regex(/^[a-z0-9][a-zA-Z0-9.:/_-]{0,200}$/, 'a model id or ARN, without wildcards'))
    .max(20)
    .default([]),
  /** Sends events to browsers, `runs watch` and agents over a WebSocket. Without it they poll. */
  liveFeed: z.boolean().default(true),
  /** How long evidence cannot be deleted; in a prod stage not even by administrators. */
  evidenceRetentionDays: z.int().min(1).max(36_500),
  /** What is exported of finished runs: OCSF lines for a SIEM, artifacts for people. */
  exports: z.array(z.enum(['siem', 'artifacts'])).default(['siem', 'artifacts']),
  /** How long exports are retained. Unlike evidence they contain text that people wrote, and can be deleted. */
  exportRetentionDays: z.int().min(1).max(36_500).default(365),
  /** How long artifacts are retained, with the values behind the digests of evidence; by default as long as evidence. */
  valuesRetentionDays: z.int().min(1).max(36_500).optional(),
  /** The evidence keys, oldest first: the last one signs; the others remain to verify their signatures. */
  evidenceKeys: z
    .array(EvidenceKeyConfig)
    .min(1)
    .max(10)
    .refine(areNamesUnique, 'each key needs a unique name')
    .refine(
      isOnlyLastKeyActive,
      'every key except the last needs retiredOn, in ascending order; the last key must not have it',
    )
    .default([{ name: 'first', algorithm: 'ed25519' }]),
});

export const StageConfig = StageSettings.superRefine((settings, problems) => {
  const { kind, workerConcurrency, intakeConcurrency, accountConcurrency } = settings;
  if (kind === 'prod' && intakeConcurrency === 0) {
    const message = 'a prod stage must reserve at least 1, or busy workers could block webhooks';
    problems.addIssue({ code: 'custom', path: ['intakeConcurrency'], message });
  }
  const { traces } = settings;
  if (typeof traces === 'object' && kind !== 'dev' && !traces.url.startsWith('https:')) {
    const message = `${traces.url} is not encrypted; use an https URL`;
    problems.addIssue({ code: 'custom', path: ['traces', 'url'], message });
  }
  const most = workersMax(settings);
  if (workerConcurrency > most) {
    const message =
      `${workerConcurrency} is more than accountConcurrency ${accountConcurrency} and intakeConcurrency ${intakeConcurrency} ` +
      `allow (${Math.max(0, most)}); lower workerConcurrency or intakeConcurrency, or have the Lambda quota raised`;
    problems.addIssue({ code: 'custom', path: ['workerConcurrency'], message });
  }
  for (const [index, { issuer, tenant }] of settings.issuers.entries()) {
    if (!settings.tenants.includes(tenant)) {
      const message = `${tenant} is not in tenants${didYouMean(tenant, settings.tenants)}`;
      problems.addIssue({ code: 'custom', path: ['issuers', index, 'tenant'], message });
    }
    if (issuer.startsWith(OWN_URL) && kind !== 'dev') {
      const message = `${OWN_URL} is for the local host; name the issuer by its https URL`;
      problems.addIssue({ code: 'custom', path: ['issuers', index, 'issuer'], message });
    }
  }
  if (isPolicyTooLong(settings)) {
    const message = `their origins do not fit into the content security policy of the console (${POLICY_MAX_CHARACTERS} characters); the settings of tenants can name more`;
    problems.addIssue({ code: 'custom', path: ['issuers'], message });
  }
  for (const { path, message } of networkProblems(settings)) problems.addIssue({ code: 'custom', path, message });
  const repeated = repeatedIssuer(settings.issuers);
  if (repeated) {
    const message = `${repeated.name} repeats the name, or the issuer and audience, of an earlier entry; a token must belong to one tenant`;
    problems.addIssue({ code: 'custom', path: ['issuers', settings.issuers.indexOf(repeated)], message });
  }
});

/** What the settings of the network need of each other. */
function networkProblems({ console, domain, firewall, vpc }: z.infer<typeof StageSettings>) {
  const problems: { path: string[]; message: string }[] = [];
  if (domain && !console) {
    const message =
      'the domain name is that of the CloudFront distribution, which belongs to the console; set console to true';
    problems.push({ path: ['domain'], message });
  }
  if (firewall && !domain) {
    const message =
      'the firewall needs a domain name: otherwise senders would use the address of the API, which has no firewall';
    problems.push({ path: ['firewall'], message });
  }
  const zone = domain?.hostedZone?.name;
  if (zone && domain.name !== zone && !domain.name.endsWith(`.${zone}`)) {
    problems.push({ path: ['domain', 'hostedZone', 'name'], message: `${domain.name} is not in the zone ${zone}` });
  }
  if (vpc?.endpoints && vpc.routeTableIds.length === 0) {
    problems.push({
      path: ['vpc', 'routeTableIds'],
      message: 'name the route tables of the subnets, for the endpoints',
    });
  }
  if (vpc?.endpoints && vpc.subnetIds.length > ENDPOINT_SUBNETS_MAX) {
    const message = `with endpoints, name at most ${ENDPOINT_SUBNETS_MAX} subnets, each in another availability zone`;
    problems.push({ path: ['vpc', 'subnetIds'], message });
  }
  return problems;
}

/** The policy of the console names the origins of all issuers. Cognito needs two for each pool. */
function isPolicyTooLong({ console, issuers, domain }: z.infer<typeof StageSettings>): boolean {
  const liveFeed = `wss://${domain?.name ?? 'a1b2c3d4e5.execute-api.ap-southeast-1.amazonaws.com'}/live`;
  return console && contentSecurityPolicy([...issuerOrigins(issuers), liveFeed]).length > POLICY_MAX_CHARACTERS;
}

export type StageConfig = z.infer<typeof StageConfig> & { stage: string };

/** Finds and checks a stage. Reports all problems at once. */
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
    throw new StageError(`there is no stage "${name.data}"; add it to context.stages in cdk.json, which has: ${names}`);
  }
  const config = StageConfig.safeParse(settings);
  if (!config.success) {
    throw new StageError(`stage "${name.data}" in cdk.json, context.stages:\n${z.prettifyError(config.error)}`);
  }
  return { stage: name.data, ...config.data };
}

/** A mistake in the settings, shown without a stack trace. */
export class StageError extends Error {
  override name = 'StageError';
}
