import { createHash } from 'node:crypto';
import { ACCOUNT, REGION } from '../aws/aws.ts';

/** What the host runs. */
const HOSTED = [
  'AWS::ApiGatewayV2::Api',
  'AWS::ApiGatewayV2::Authorizer',
  'AWS::ApiGatewayV2::Integration',
  'AWS::ApiGatewayV2::Route',
  'AWS::DynamoDB::GlobalTable',
  'AWS::DynamoDB::Table',
  'AWS::Events::Rule',
  'AWS::KMS::Alias',
  'AWS::KMS::Key',
  'AWS::Lambda::EventSourceMapping',
  'AWS::Lambda::Function',
  'AWS::Lambda::Permission',
  'AWS::IAM::ManagedPolicy',
  'AWS::IAM::Policy',
  'AWS::IAM::Role',
  'AWS::S3::Bucket',
  'AWS::S3::BucketPolicy',
  'AWS::Scheduler::Schedule',
  'AWS::SecretsManager::Secret',
  'AWS::SQS::Queue',
  'AWS::StepFunctions::StateMachine',
];

/** What changes nothing on one machine: retention, alarms, and policies that restrict callers we do not have. */
const WITHOUT_LOCAL_COUNTERPART = [
  'Custom::EvidenceKey',
  'AWS::ApiGatewayV2::Deployment',
  'AWS::ApiGatewayV2::Stage',
  'AWS::CDK::Metadata',
  'AWS::CloudWatch::Alarm',
  'AWS::CloudWatch::CompositeAlarm',
  'AWS::CloudWatch::Dashboard',
  'AWS::Logs::LogGroup',
  'AWS::Logs::MetricFilter',
  'AWS::Logs::QueryDefinition',
  'AWS::Logs::ResourcePolicy',
  'AWS::Scheduler::ScheduleGroup',
  'AWS::SecretsManager::ResourcePolicy',
  'AWS::SNS::Subscription',
  'AWS::SNS::Topic',
  'AWS::SNS::TopicPolicy',
  'AWS::SQS::QueuePolicy',
];

export const SUPPORTED_TYPES: ReadonlySet<string> = new Set([...HOSTED, ...WITHOUT_LOCAL_COUNTERPART]);

/** Where the two ports of the host are; some physical ids are URLs. */
export interface HostUrls {
  /** AWS wire protocols; the SDK takes a queue's host from its QueueUrl, so this is in every queue's `Ref`. */
  gatewayUrl: string;
  /** HTTP for the world; the ApiEndpoint of an HTTP API. */
  worldUrl: string;
}

/** What `Ref` and `Fn::GetAtt` give for a resource. */
export interface Identity {
  ref: string;
  attributes: Record<string, string>;
}

export interface IdentityInput extends HostUrls {
  stackName: string;
  logicalId: string;
  type: string;
  /** A property already resolved, or undefined. */
  property(name: string): unknown;
}

type Identify = (input: IdentityInput) => Identity;

/** Physical ids are a function of stack and logical id, so a restart finds its data again. */
const IDENTITIES: Record<string, Identify> = {
  'AWS::ApiGatewayV2::Api': (input) => ({
    ref: shortHash(input, 10),
    attributes: { ApiId: shortHash(input, 10), ApiEndpoint: input.worldUrl },
  }),
  'AWS::ApiGatewayV2::Authorizer': hashed('AuthorizerId'),
  'AWS::ApiGatewayV2::Integration': hashed('IntegrationId'),
  'AWS::ApiGatewayV2::Route': hashed('RouteId'),
  'AWS::ApiGatewayV2::Deployment': hashed('DeploymentId'),
  'AWS::ApiGatewayV2::Stage': (input) => ({ ref: explicitName(input, 'StageName'), attributes: {} }),
  'AWS::DynamoDB::GlobalTable': table,
  'AWS::DynamoDB::Table': table,
  'Custom::EvidenceKey': () => ({ ref: '', attributes: { Pem: 'known to KMS', Fingerprint: 'known to KMS' } }),
  'AWS::Events::Rule': named('Name', (name) => regional('events', `rule/${name}`)),
  'AWS::IAM::ManagedPolicy': (input) => {
    const arn = `arn:aws:iam::${ACCOUNT}:policy/${explicitName(input, 'ManagedPolicyName')}`;
    return { ref: arn, attributes: { PolicyArn: arn } };
  },
  'AWS::IAM::Role': (input) => {
    const name = explicitName(input, 'RoleName');
    return {
      ref: name,
      attributes: { Arn: `arn:aws:iam::${ACCOUNT}:role/${name}`, RoleId: `AROA${shortHash(input, 16).toUpperCase()}` },
    };
  },
  'AWS::KMS::Alias': (input) => ({ ref: explicitName(input, 'AliasName'), attributes: {} }),
  'AWS::KMS::Key': (input) => {
    const id = shortHash(input, 32).replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');
    return { ref: id, attributes: { Arn: regional('kms', `key/${id}`), KeyId: id } };
  },
  'AWS::Lambda::EventSourceMapping': hashed('Id'),
  'AWS::Lambda::Function': named('FunctionName', (name) => `${regional('lambda', 'function')}:${name}`),
  'AWS::Logs::LogGroup': named('LogGroupName', (name) => `${regional('logs', 'log-group')}:${name}:*`),
  'AWS::S3::Bucket': (input) => {
    const name = explicitName(input, 'BucketName').toLowerCase();
    const domain = `${name}.s3.amazonaws.com`;
    return {
      ref: name,
      attributes: { Arn: `arn:aws:s3:::${name}`, DomainName: domain, RegionalDomainName: domain },
    };
  },
  'AWS::Scheduler::Schedule': named('Name', (name) => regional('scheduler', `schedule/default/${name}`)),
  'AWS::Scheduler::ScheduleGroup': named('Name', (name) => regional('scheduler', `schedule-group/${name}`)),
  'AWS::SecretsManager::Secret': (input) => {
    const arn = `${regional('secretsmanager', 'secret')}:${explicitName(input, 'Name')}-LOCAL1`;
    return { ref: arn, attributes: { Id: arn } };
  },
  'AWS::SNS::Topic': (input) => {
    const name = explicitName(input, 'TopicName');
    return { ref: regional('sns', name), attributes: { TopicArn: regional('sns', name), TopicName: name } };
  },
  'AWS::SQS::Queue': queue,
  'AWS::StepFunctions::StateMachine': (input) => {
    const name = explicitName(input, 'StateMachineName');
    const arn = `${regional('states', 'stateMachine')}:${name}`;
    return { ref: arn, attributes: { Arn: arn, Name: name } };
  },
  'AWS::CloudWatch::Alarm': named('AlarmName', (name) => `${regional('cloudwatch', 'alarm')}:${name}`),
  'AWS::CloudWatch::CompositeAlarm': named('AlarmName', (name) => `${regional('cloudwatch', 'alarm')}:${name}`),
};

export function identify(input: IdentityInput): Identity {
  const known = IDENTITIES[input.type];
  return known ? known(input) : { ref: `${input.stackName}-${input.logicalId}`, attributes: {} };
}

/** Bucket names are the shortest: 63 characters. Longer generated names are cut and told apart by a hash. */
const LONGEST_GENERATED_NAME = 63;

function explicitName(input: IdentityInput, property: string): string {
  const explicit = input.property(property);
  if (typeof explicit === 'string') return explicit;
  const generated = `${input.stackName}-${input.logicalId}`;
  if (generated.length <= LONGEST_GENERATED_NAME) return generated;
  const hash = shortHash(input, 8);
  return `${generated.slice(0, LONGEST_GENERATED_NAME - hash.length - 1)}-${hash}`;
}

function regional(service: string, resource: string): string {
  return `arn:aws:${service}:${REGION}:${ACCOUNT}:${resource}`;
}

function shortHash(input: IdentityInput, hexDigits: number): string {
  return createHash('sha256').update(`${input.stackName}/${input.logicalId}`).digest('hex').slice(0, hexDigits);
}

function hashed(attribute: string): Identify {
  return (input) => ({ ref: shortHash(input, 8), attributes: { [attribute]: shortHash(input, 8) } });
}

function named(property: string, arnOf: (name: string) => string): Identify {
  return (input) => {
    const name = explicitName(input, property);
    return { ref: name, attributes: { Arn: arnOf(name) } };
  };
}

function table(input: IdentityInput): Identity {
  const name = explicitName(input, 'TableName');
  const arn = regional('dynamodb', `table/${name}`);
  return {
    ref: name,
    attributes: { Arn: arn, StreamArn: `${arn}/stream/2026-01-01T00:00:00.000`, TableId: shortHash(input, 32) },
  };
}

function queue(input: IdentityInput): Identity {
  const base = explicitName(input, 'QueueName');
  const name = input.property('FifoQueue') === true && !base.endsWith('.fifo') ? `${base}.fifo` : base;
  const url = `${input.gatewayUrl}/${ACCOUNT}/${name}`;
  return { ref: url, attributes: { Arn: regional('sqs', name), QueueName: name, QueueUrl: url } };
}
