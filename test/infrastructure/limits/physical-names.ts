import type { ResolvedResource, ResolvedStack } from '../../../local/template/template.ts';

type Properties = Record<string, unknown>;
type NameOf = (properties: Properties) => unknown;

const property =
  (name: string): NameOf =>
  (properties) =>
    properties[name];
const within =
  (part: string, name: string): NameOf =>
  (properties) =>
    (properties[part] as Properties | undefined)?.[name];
/** Has no name, or one that only the resource that contains it knows. */
const NONE: NameOf = () => undefined;

/**
 * How each type of resource gets a name that must be unique in an account. Without one, CloudFormation makes a name from the
 * name of the stack, the logical id and a random part.
 */
const NAMES: Record<string, NameOf> = {
  'AWS::ApiGatewayV2::Api': property('Name'),
  'AWS::ApiGatewayV2::DomainName': property('DomainName'),
  'AWS::ApiGatewayV2::Integration': NONE,
  'AWS::ApiGatewayV2::Route': NONE,
  'AWS::ApiGatewayV2::Stage': NONE,
  'AWS::CloudFront::Distribution': NONE,
  'AWS::CloudFront::Function': property('Name'),
  'AWS::CloudFront::OriginAccessControl': within('OriginAccessControlConfig', 'Name'),
  'AWS::CloudFront::ResponseHeadersPolicy': within('ResponseHeadersPolicyConfig', 'Name'),
  'AWS::CloudWatch::Alarm': property('AlarmName'),
  'AWS::CloudWatch::CompositeAlarm': property('AlarmName'),
  'AWS::CloudWatch::Dashboard': property('DashboardName'),
  'AWS::DynamoDB::GlobalTable': property('TableName'),
  'AWS::EC2::SecurityGroup': property('GroupName'),
  'AWS::EC2::VPCEndpoint': NONE,
  'AWS::Events::Rule': property('Name'),
  'AWS::IAM::Role': property('RoleName'),
  'AWS::KMS::Key': NONE,
  'AWS::KMS::Alias': property('AliasName'),
  'AWS::Lambda::EventInvokeConfig': NONE,
  'AWS::Lambda::EventSourceMapping': NONE,
  'AWS::Lambda::Function': property('FunctionName'),
  'AWS::Lambda::Permission': NONE,
  'AWS::Logs::LogGroup': property('LogGroupName'),
  // Its metric has a name of its own, in a namespace that all stages of an account could share.
  'AWS::Logs::MetricFilter': ({ MetricTransformations }) =>
    (MetricTransformations as { MetricNamespace: string }[])[0]?.MetricNamespace,
  'AWS::Logs::QueryDefinition': property('Name'),
  'AWS::Route53::RecordSet': property('Name'),
  'AWS::S3::Bucket': property('BucketName'),
  'AWS::S3::BucketPolicy': NONE,
  'AWS::SecretsManager::Secret': property('Name'),
  'AWS::SNS::Subscription': NONE,
  'AWS::SNS::Topic': property('TopicName'),
  'AWS::SNS::TopicPolicy': NONE,
  'AWS::SQS::Queue': property('QueueName'),
  'AWS::SQS::QueuePolicy': NONE,
  'AWS::SSM::Parameter': property('Name'),
  'AWS::StepFunctions::StateMachine': property('StateMachineName'),
  'AWS::WAFv2::WebACL': property('Name'),
  'Custom::ConsoleFiles': NONE,
  'Custom::EvidenceKeys': NONE,
};

/** Type and name of every resource that has a name of its own. Several metric filters share one namespace. */
export function physicalNames(stack: ResolvedStack): string[] {
  const named = [...stack.resources.values()].flatMap((resource) => {
    const name = nameOf(resource);
    return name === undefined ? [] : [`${resource.type} ${String(name)}`];
  });
  return [...new Set(named)];
}

function nameOf({ type, properties }: ResolvedResource): unknown {
  const of = NAMES[type];
  if (!of) throw new Error(`say in physical-names.ts which property names a ${type}, or that none does`);
  return of(properties);
}
