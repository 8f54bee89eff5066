import { createHash } from 'node:crypto';
import { ACCOUNT, REGION } from '../aws/aws.ts';

/** Resources that the host runs. */
const HOSTED = [
  'AWS::ApiGatewayV2::Api',
  'AWS::ApiGatewayV2::Integration',
  'AWS::ApiGatewayV2::Route',
  'AWS::CloudFront::Distribution',
  'AWS::CloudWatch::Alarm',
  'AWS::CloudWatch::CompositeAlarm',
  'AWS::Logs::MetricFilter',
  'AWS::CloudFront::Function',
  'AWS::CloudFront::ResponseHeadersPolicy',
  'AWS::ApiGatewayV2::Stage',
  'AWS::DynamoDB::GlobalTable',
  'AWS::Events::Rule',
  'AWS::IAM::Role',
  'AWS::KMS::Key',
  'AWS::Lambda::EventSourceMapping',
  'AWS::Lambda::Function',
  'AWS::Lambda::Permission',
  'AWS::S3::Bucket',
  'AWS::S3::BucketPolicy',
  'AWS::SecretsManager::Secret',
  'AWS::SQS::Queue',
  'AWS::StepFunctions::StateMachine',
  'Custom::ConsoleFiles',
];

/** Resources without an effect on one machine: logs, dashboards, topics, and policies for callers that do not exist here. */
const WITHOUT_LOCAL_EFFECT = [
  'Custom::EvidenceKeys',
  'AWS::CloudFront::OriginAccessControl',
  'AWS::CloudWatch::Dashboard',
  'AWS::EC2::SecurityGroup',
  'AWS::EC2::VPCEndpoint',
  // No repeats of events: lambda-invoke.ts makes none.
  'AWS::Lambda::EventInvokeConfig',
  'AWS::Logs::LogGroup',
  'AWS::Logs::QueryDefinition',
  'AWS::Route53::RecordSet',
  'AWS::SNS::Subscription',
  'AWS::SNS::Topic',
  'AWS::SNS::TopicPolicy',
  'AWS::SQS::QueuePolicy',
  'AWS::WAFv2::WebACL',
];

export const SUPPORTED_TYPES: ReadonlySet<string> = new Set([...HOSTED, ...WITHOUT_LOCAL_EFFECT]);

/** The URLs of the two ports of the host. Some physical ids contain them. */
export interface HostUrls {
  /** The AWS endpoint. It is in the `Ref` of every queue, because the SDK sends to the host of a queue's URL. */
  awsEndpointUrl: string;
  /** The `ApiEndpoint` of the HTTP API. */
  hostUrl: string;
}

/** The most that a stage has. */
const EVIDENCE_KEYS_MAX = 10;

/** The values of `Ref` and `Fn::GetAtt` of a resource. */
export interface Identity {
  ref: string;
  attributes: Record<string, string>;
}

interface IdentityInput extends HostUrls {
  stackName: string;
  logicalId: string;
  type: string;
  /** The resolved value of a property, or undefined. */
  property(name: string): unknown;
}

type Identify = (input: IdentityInput) => Identity;

/** Physical ids depend only on stack and logical id, so that a restart finds its data. */
const IDENTITIES: Record<string, Identify> = {
  'AWS::ApiGatewayV2::Api': (input) => {
    const isSocket = input.property('ProtocolType') === 'WEBSOCKET';
    const ApiEndpoint = isSocket ? input.hostUrl.replace(/^http/, 'ws') : input.hostUrl;
    return { ref: shortHash(input, 10), attributes: { ApiEndpoint } };
  },
  'AWS::ApiGatewayV2::Integration': (input) => ({ ref: shortHash(input, 8), attributes: {} }),
  'AWS::CloudFront::Distribution': (input) => ({
    ref: shortHash(input, 14).toUpperCase(),
    attributes: { DomainName: new URL(input.hostUrl).host },
  }),
  'AWS::CloudFront::Function': named(
    'Name',
    (name) => `arn:aws:cloudfront::${ACCOUNT}:function/${name}`,
    'FunctionARN',
  ),
  'AWS::CloudFront::OriginAccessControl': (input) => ({
    ref: shortHash(input, 14),
    attributes: { Id: shortHash(input, 14) },
  }),
  'AWS::CloudWatch::Alarm': named('AlarmName', (name) => `${regional('cloudwatch', 'alarm')}:${name}`),
  'AWS::CloudWatch::CompositeAlarm': named('AlarmName', (name) => `${regional('cloudwatch', 'alarm')}:${name}`),
  'AWS::DynamoDB::GlobalTable': (input) => {
    const name = explicitName(input, 'TableName');
    const Arn = regional('dynamodb', `table/${name}`);
    return { ref: name, attributes: { Arn, StreamArn: `${Arn}/stream/local` } };
  },
  'AWS::EC2::SecurityGroup': (input) => {
    const GroupId = `sg-${shortHash(input, 17)}`;
    return { ref: GroupId, attributes: { GroupId } };
  },
  'AWS::Events::Rule': named('Name', (name) => regional('events', `rule/${name}`)),
  'AWS::IAM::Role': named('RoleName', (name) => `arn:aws:iam::${ACCOUNT}:role/${name}`),
  'AWS::KMS::Key': (input) => {
    const id = shortHash(input, 32).replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');
    return { ref: id, attributes: { Arn: regional('kms', `key/${id}`) } };
  },
  'AWS::Lambda::Function': named('FunctionName', (name) => `${regional('lambda', 'function')}:${name}`),
  'AWS::Logs::LogGroup': named('LogGroupName', (name) => `${regional('logs', 'log-group')}:${name}:*`),
  'AWS::S3::Bucket': (input) => {
    const name = explicitName(input, 'BucketName').toLowerCase();
    return {
      ref: name,
      attributes: { Arn: `arn:aws:s3:::${name}`, RegionalDomainName: `${name}.s3.${REGION}.amazonaws.com` },
    };
  },
  'AWS::SecretsManager::Secret': (input) => {
    const arn = `${regional('secretsmanager', 'secret')}:${explicitName(input, 'Name')}-LOCAL1`;
    return { ref: arn, attributes: {} };
  },
  'AWS::SNS::Topic': (input) => ({ ref: regional('sns', explicitName(input, 'TopicName')), attributes: {} }),
  'AWS::SQS::Queue': (input) => {
    const name = explicitName(input, 'QueueName');
    const ref = `${input.awsEndpointUrl}/${ACCOUNT}/${name}`;
    return { ref, attributes: { Arn: regional('sqs', name), QueueName: name } };
  },
  'AWS::StepFunctions::StateMachine': (input) => {
    const name = explicitName(input, 'StateMachineName');
    return { ref: `${regional('states', 'stateMachine')}:${name}`, attributes: { Name: name } };
  },
  // The local stage has no such outputs: its keys are read from their URL.
  'Custom::EvidenceKeys': () => ({
    ref: '',
    attributes: Object.fromEntries(
      Array.from({ length: EVIDENCE_KEYS_MAX }, (_, index) => index).flatMap((index) => [
        [`Pem${index}`, 'from KMS'],
        [`Fingerprint${index}`, 'from KMS'],
      ]),
    ),
  }),
};

export function identify(input: IdentityInput): Identity {
  const known = IDENTITIES[input.type];
  return known ? known(input) : { ref: `${input.stackName}-${input.logicalId}`, attributes: {} };
}

/** The limit of bucket names. A longer generated name is cut and gets a hash. */
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

function named(property: string, arnOf: (name: string) => string, arnAttribute = 'Arn'): Identify {
  return (input) => {
    const name = explicitName(input, property);
    return { ref: name, attributes: { [arnAttribute]: arnOf(name) } };
  };
}
