import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { FIREWALL_UNITS } from '../../../lib/console/firewall.ts';
import { apiDefinitions, httpRoutes } from '../../../local/api-gateway/http-routes.ts';
import type { Assembly } from '../../../local/template/synthesize.ts';
import type { CloudFormationTemplate, ResolvedStack } from '../../../local/template/template.ts';

interface Measured {
  assembly: Assembly;
  stack: ResolvedStack;
  firewall: CloudFormationTemplate;
}
type Sizes = [name: string, size: number][];

interface Limit {
  of: string;
  most: number;
  source: string;
  /** What to do if it is exceeded. */
  advice: string;
  sizes(measured: Measured): Sizes;
  /** The whole limit may be used: nothing that is measured depends on the region or the account. */
  isExact?: true;
}

const docs = (path: string) => `https://docs.aws.amazon.com/${path}`;
const CLOUDFORMATION = docs('AWSCloudFormation/latest/UserGuide/cloudformation-limits.html');
const LAMBDA = docs('lambda/latest/dg/gettingstarted-limits.html');
const IAM = docs('IAM/latest/UserGuide/reference_iam-quotas.html');
const HTTP_API = docs('apigateway/latest/developerguide/http-api-quotas.html');
const CLOUDFRONT = docs('AmazonCloudFront/latest/DeveloperGuide/cloudfront-limits.html');
const CLOUDWATCH = docs('AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html');
const LOGS = docs('AmazonCloudWatch/latest/logs/cloudwatch_limits_cwl.html');
const SQS = docs('AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-policies.html');
const EVENTS = docs('eventbridge/latest/userguide/eb-quota.html');
const SECRETS = docs('secretsmanager/latest/userguide/reference_limits.html');
const VPC = docs('vpc/latest/userguide/amazon-vpc-limits.html');
const ENDPOINTS = docs('vpc/latest/privatelink/vpc-limits-endpoints.html');

const FEWER_RESOURCES = 'share resources, or move a part of the stage into a stack of its own';
const SHORTER_ENVIRONMENT = 'find values by stage and tenant at run time instead of listing them in the environment';
const FEWER_STATEMENTS = 'merge statements by resource, or use a prefix with the name of the stage';

export const LIMITS: readonly Limit[] = [
  limit('resources of a template', 500, CLOUDFORMATION, FEWER_RESOURCES, ({ assembly }) => [
    ['resources', Object.keys(assembly.template.Resources ?? {}).length],
  ]),
  limit('outputs of a template', 200, CLOUDFORMATION, 'give the values as one JSON output', ({ assembly }) => [
    ['outputs', Object.keys(assembly.template.Outputs ?? {}).length],
  ]),
  limit('parameters of a template', 200, CLOUDFORMATION, 'use settings of the stage', ({ assembly }) => [
    ['parameters', Object.keys(partOf(assembly, 'Parameters')).length],
  ]),
  limit(
    'dynamic references of a template',
    60,
    docs('AWSCloudFormation/latest/UserGuide/dynamic-references.html'),
    'let functions read the secret instead',
    ({ assembly }) => [['references', JSON.stringify(assembly.template).split('{{resolve:').length - 1]],
  ),
  limit('bytes of a template', 1_000_000, CLOUDFORMATION, FEWER_RESOURCES, ({ assembly }) => [
    ['template', bytes(assembly.template)],
  ]),
  limit('bytes of the description of a template', 1_024, CLOUDFORMATION, 'shorten the description', ({ assembly }) => [
    ['description', bytes((assembly.template as { Description?: string }).Description ?? '')],
  ]),
  limit('bytes of the environment of a function', 4_096, LAMBDA, SHORTER_ENVIRONMENT, ({ stack }) =>
    stack.ofType('AWS::Lambda::Function').map(({ logicalId, properties }) => {
      const { Variables = {} } = (properties.Environment ?? {}) as { Variables?: Record<string, unknown> };
      return [logicalId, sum(Object.entries(Variables).map(([name, value]) => bytes(name) + bytes(String(value))))];
    }),
  ),
  limit(
    'bytes of the unzipped code of a function',
    250 * 1024 * 1024,
    LAMBDA,
    'leave packages out of the bundle',
    (measured) =>
      measured.stack.ofType('AWS::Lambda::Function').map(({ logicalId, properties }) => {
        const { S3Key } = properties.Code as { S3Key: string };
        return [logicalId, folderBytes(measured.assembly.codeFolder(S3Key))];
      }),
  ),
  limit(
    'bytes of the resource policy of a function',
    20 * 1024,
    LAMBDA,
    'let callers use a role instead',
    policyOfCallers,
  ),
  ofList('subnets of a function', 16, LAMBDA, 'AWS::Lambda::Function', (each) => part(each.VpcConfig, 'SubnetIds')),
  ofList('security groups of a function', 5, LAMBDA, 'AWS::Lambda::Function', (each) =>
    part(each.VpcConfig, 'SecurityGroupIds'),
  ),
  ofList(
    'filters of an event source',
    5,
    docs('lambda/latest/dg/invocation-eventfiltering.html'),
    'AWS::Lambda::EventSourceMapping',
    (each) => part(each.FilterCriteria, 'Filters'),
  ),
  limit('characters of the inline policies of a role', 10_240, IAM, FEWER_STATEMENTS, inlinePolicies),
  limit('characters of a managed policy', 6_144, IAM, FEWER_STATEMENTS, ({ stack }) => [
    ['none', 0],
    ...sizesOf(stack, 'AWS::IAM::ManagedPolicy', 'PolicyDocument'),
  ]),
  ofText('characters of the trust policy of a role', 2_048, IAM, 'AWS::IAM::Role', 'AssumeRolePolicyDocument'),
  count('roles in an account', 1_000, IAM, 'AWS::IAM::Role'),
  limit('routes of an HTTP API', 300, HTTP_API, 'join routes with a path parameter', ({ stack }) =>
    apiDefinitions(stack).map((api) => ['routes', httpRoutes(api).length]),
  ),
  limit('integrations of an HTTP API', 300, HTTP_API, 'serve several groups of routes with one function', ({ stack }) =>
    apiDefinitions(stack).map((api) => ['integrations', Object.keys(api.integrations).length]),
  ),
  limit('authorizers of an HTTP API', 10, HTTP_API, 'use one authorizer for all routes', ({ stack }) =>
    apiDefinitions(stack).map((api) => ['authorizers', Object.keys(api.authorizers).length]),
  ),
  ofText(
    'bytes of the policy of a bucket',
    20 * 1024,
    docs('AmazonS3/latest/userguide/add-bucket-policy.html'),
    'AWS::S3::BucketPolicy',
    'PolicyDocument',
  ),
  ofText(
    'bytes of the policy of a key',
    32 * 1024,
    docs('kms/latest/developerguide/resource-limits.html'),
    'AWS::KMS::Key',
    'KeyPolicy',
  ),
  ofText(
    'bytes of a state machine',
    1024 * 1024,
    docs('step-functions/latest/dg/service-quotas.html'),
    'AWS::StepFunctions::StateMachine',
    'DefinitionString',
  ),
  ofText('bytes of the policy of a queue', 8_192, SQS, 'AWS::SQS::QueuePolicy', 'PolicyDocument'),
  ofList('statements in the policy of a queue', 20, SQS, 'AWS::SQS::QueuePolicy', (each) =>
    part(each.PolicyDocument, 'Statement'),
  ),
  ofText(
    'bytes of the policy of a topic',
    30_720,
    docs('sns/latest/dg/sns-access-policy-language-api-permissions-reference.html'),
    'AWS::SNS::TopicPolicy',
    'PolicyDocument',
  ),
  // 300 in most regions; eu-south-1 and af-south-1 have 100.
  count('rules of the event bus', 100, EVENTS, 'AWS::Events::Rule'),
  ofList('targets of a rule', 5, EVENTS, 'AWS::Events::Rule', (each) => each.Targets),
  ofList(
    'indexes of a table',
    20,
    docs('amazondynamodb/latest/developerguide/ServiceQuotas.html'),
    'AWS::DynamoDB::GlobalTable',
    (each) => each.GlobalSecondaryIndexes,
  ),
  count('alarms in a region', 5_000, CLOUDWATCH, 'AWS::CloudWatch::Alarm'),
  ofList('actions of an alarm', 5, CLOUDWATCH, 'AWS::CloudWatch::Alarm', (each) => each.AlarmActions),
  ofList('metrics of an alarm', 10, CLOUDWATCH, 'AWS::CloudWatch::Alarm', (each) => each.Metrics),
  ofText(
    'characters of the rule of a composite alarm',
    10_240,
    CLOUDWATCH,
    'AWS::CloudWatch::CompositeAlarm',
    'AlarmRule',
  ),
  ofText('characters of the description of an alarm', 1_024, CLOUDWATCH, 'AWS::CloudWatch::Alarm', 'AlarmDescription'),
  limit('widgets of a dashboard', 500, CLOUDWATCH, 'leave out widgets that nobody needs', ({ stack }) =>
    widgets(stack).map((list) => ['widgets', list.length]),
  ),
  limit('metrics of a widget', 500, CLOUDWATCH, 'divide the widget, or use a search expression', ({ stack }) =>
    widgets(stack).flatMap((list) =>
      list.map(({ properties }): Sizes[number] => [properties.title ?? '', metricsOf(properties)]),
    ),
  ),
  limit('metrics of a dashboard', 2_500, CLOUDWATCH, 'divide the dashboard', ({ stack }) =>
    widgets(stack).map((list) => ['dashboard', sum(list.map(({ properties }) => metricsOf(properties)))]),
  ),
  limit('alarms of a widget', 100, CLOUDWATCH, 'divide the widget', ({ stack }) =>
    widgets(stack).flatMap((list) =>
      list.map(({ properties }): Sizes[number] => [properties.title ?? '', properties.alarms?.length ?? 0]),
    ),
  ),
  limit('metric filters of a log group', 100, LOGS, 'count with metrics in the log instead', ({ stack }) => {
    const groups = stack.ofType('AWS::Logs::MetricFilter').map(({ properties }) => String(properties.LogGroupName));
    return [...new Set(groups)].map((group) => [group, groups.filter((each) => each === group).length]);
  }),
  count('saved queries in a region', 1_000, LOGS, 'AWS::Logs::QueryDefinition'),
  ofText('characters of a saved query', 10_000, LOGS, 'AWS::Logs::QueryDefinition', 'QueryString'),
  ofList('log groups of a saved query', 50, LOGS, 'AWS::Logs::QueryDefinition', (each) => each.LogGroupNames),
  ofText('characters of the name of a secret', 512, SECRETS, 'AWS::SecretsManager::Secret', 'Name'),
  ofText('characters of the description of a secret', 2_048, SECRETS, 'AWS::SecretsManager::Secret', 'Description'),
  ofText('characters of the description of a function', 256, LAMBDA, 'AWS::Lambda::Function', 'Description'),
  {
    ...ofText('characters of the name of a function', 64, LAMBDA, 'AWS::Lambda::Function', 'FunctionName'),
    isExact: true,
  },
  ofText('characters of the description of a role', 1_000, IAM, 'AWS::IAM::Role', 'Description'),
  ofText(
    'characters of the description of a key',
    8_192,
    docs('kms/latest/developerguide/resource-limits.html'),
    'AWS::KMS::Key',
    'Description',
  ),
  limit('behaviors of a distribution', 75, CLOUDFRONT, 'give paths of the API a common beginning', ({ stack }) =>
    distributions(stack).map((each) => ['behaviors', list(each.CacheBehaviors).length + 1]),
  ),
  limit('origins of a distribution', 100, CLOUDFRONT, 'use one origin for several behaviors', ({ stack }) =>
    distributions(stack).map((each) => ['origins', list(each.Origins).length]),
  ),
  ofText('bytes of a function at the edge', 10 * 1024, CLOUDFRONT, 'AWS::CloudFront::Function', 'FunctionCode'),
  {
    ...limit('characters of the names in CloudFront', 64, CLOUDFRONT, 'shorten the generated part', ({ stack }) =>
      // The region of the test is 5 characters shorter than the longest one.
      sizesOf(stack, 'AWS::CloudFront::Function', 'Name').map(([name, size]) => [name, size + 5]),
    ),
    isExact: true,
  },
  limit('response headers policies in an account', 20, CLOUDFRONT, 'share the policy', ({ stack }) => [
    ['policies', stack.ofType('AWS::CloudFront::ResponseHeadersPolicy').length],
  ]),
  limit('bytes of the headers of a policy', 10_240, CLOUDFRONT, 'allow a common origin of the issuers', ({ stack }) =>
    sizesOf(stack, 'AWS::CloudFront::ResponseHeadersPolicy', 'ResponseHeadersPolicyConfig'),
  ),
  // What CloudFront documents for its other headers. It refuses a longer policy, too, but its documents do not say from where on.
  limit('characters of the content security policy', 1_783, CLOUDFRONT, 'name fewer issuers', ({ stack }) =>
    stack.ofType('AWS::CloudFront::ResponseHeadersPolicy').map(({ logicalId, properties }) => {
      const { SecurityHeadersConfig } = properties.ResponseHeadersPolicyConfig as { SecurityHeadersConfig: unknown };
      const policy = part(part(SecurityHeadersConfig, 'ContentSecurityPolicy'), 'ContentSecurityPolicy');
      return [logicalId, String(policy).length];
    }),
  ),
  ofList('subnets of an endpoint, one in each zone', 6, ENDPOINTS, 'AWS::EC2::VPCEndpoint', (each) => each.SubnetIds),
  limit('endpoints in a VPC', 50, ENDPOINTS, 'use endpoints that the VPC already has', ({ stack }) => [
    ['endpoints', stack.ofType('AWS::EC2::VPCEndpoint').length],
  ]),
  ofList('rules of a security group', 60, VPC, 'AWS::EC2::SecurityGroup', (each) => each.SecurityGroupIngress),
  limit(
    'capacity units of the firewall',
    1_500,
    docs('waf/latest/developerguide/aws-waf-capacity-units.html'),
    'leave a group of rules out; more units cost extra',
    ({ firewall }) => Object.values(firewall.Resources ?? {}).map(() => ['web ACL', FIREWALL_UNITS]),
  ),
];

function limit(of: string, most: number, source: string, advice: string, sizes: Limit['sizes']): Limit {
  return { of, most, source, advice, sizes };
}

function ofText(of: string, most: number, source: string, type: string, property: string): Limit {
  return limit(of, most, source, `shorten ${property} of each ${type}`, ({ stack }) => sizesOf(stack, type, property));
}

function ofList(
  of: string,
  most: number,
  source: string,
  type: string,
  listOf: (properties: Properties) => unknown,
): Limit {
  const sizes: Limit['sizes'] = ({ stack }) =>
    stack.ofType(type).map(({ logicalId, properties }) => [logicalId, list(listOf(properties)).length]);
  return { ...limit(of, most, source, `use fewer, or several of ${type}`, sizes), isExact: true };
}

/** The limit is for all stages of an account, of which there can be about ten. */
function count(of: string, most: number, source: string, type: string): Limit {
  return limit(of, most, source, `share resources of ${type}`, ({ stack }) => [[type, 10 * stack.ofType(type).length]]);
}

type Properties = Record<string, unknown>;

const bytes = (value: unknown) => Buffer.byteLength(typeof value === 'string' ? value : JSON.stringify(value));
const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0);
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const part = (value: unknown, name: string): unknown => (value as Properties | undefined)?.[name];
const partOf = ({ template }: Assembly, name: string) => ((template as Properties)[name] ?? {}) as Properties;

function sizesOf(stack: ResolvedStack, type: string, property: string): Sizes {
  return stack
    .ofType(type)
    .filter(({ properties }) => properties[property] !== undefined)
    .map(({ logicalId, properties }) => [logicalId, bytes(properties[property])]);
}

function inlinePolicies({ stack }: Measured): Sizes {
  return stack.ofType('AWS::IAM::Role').map(({ logicalId, properties }) => {
    const documents = list(properties.Policies).map((each) => bytes(part(each, 'PolicyDocument')));
    return [logicalId, sum(documents)];
  });
}

function policyOfCallers({ stack }: Measured): Sizes {
  const sizes = new Map<string, number>();
  for (const { properties } of stack.ofType('AWS::Lambda::Permission')) {
    const name = String(properties.FunctionName);
    // A statement has about 200 characters of its own beside what it names.
    sizes.set(name, (sizes.get(name) ?? 0) + bytes(properties) + 200);
  }
  return [...sizes];
}

interface Widget {
  properties: { title?: string; metrics?: unknown[]; alarms?: unknown[] };
}

const widgets = (stack: ResolvedStack): Widget[][] =>
  stack
    .ofType('AWS::CloudWatch::Dashboard')
    .map(({ properties }) => (JSON.parse(String(properties.DashboardBody)) as { widgets: Widget[] }).widgets);
const metricsOf = ({ metrics = [] }: Widget['properties']) => metrics.length;

const distributions = (stack: ResolvedStack) =>
  stack
    .ofType('AWS::CloudFront::Distribution')
    .map(({ properties }) => properties.DistributionConfig as { CacheBehaviors?: unknown; Origins?: unknown });

function folderBytes(path: string): number {
  const entries = readdirSync(path, { withFileTypes: true, recursive: true });
  return sum(
    entries.filter((entry) => entry.isFile()).map((entry) => statSync(join(entry.parentPath, entry.name)).size),
  );
}
