import { ACCOUNT, REGION } from '../aws/aws.ts';
import type { ResolvedResource, ResolvedStack } from '../template/template.ts';
import { dynamoDbChecks } from './access-checks-dynamodb.ts';
import { type S3Call, s3Checks } from './access-checks-s3.ts';
import type { ConditionContext } from './conditions.ts';

/** One thing that IAM must allow before a call is executed; a transaction needs one per item. */
export interface AccessCheck {
  action: string;
  resource: string | string[];
  context?: ConditionContext;
}

export type JsonInput = Record<string, unknown>;

export type { S3Call };

/** What a call needs to be granted, by the mapping of operations to actions that AWS documents per service. */
export function accessChecks(
  service: string,
  operation: string,
  input: JsonInput,
  stack: ResolvedStack,
): AccessCheck[] {
  switch (service) {
    case 'dynamodb':
      return dynamoDbChecks(operation, input, stack);
    case 'sqs':
      return sqsChecks(operation, input, stack);
    case 'states':
      return statesChecks(operation, input, stack);
    case 'secretsmanager':
      return [secretsManagerCheck(operation, input, stack)];
    case 'kms':
      return [kmsCheck(operation, input, stack)];
    default:
      return [{ action: `${service}:${operation}`, resource: '*' }];
  }
}

export { s3Checks };

function redrivenTo(deadLetterArn: string, stack: ResolvedStack): string[] {
  const leadsThere = ({ properties }: ResolvedResource) =>
    (properties.RedrivePolicy as { deadLetterTargetArn?: string } | undefined)?.deadLetterTargetArn === deadLetterArn;
  return stack
    .ofType('AWS::SQS::Queue')
    .filter(leadsThere)
    .map(({ arn }) => arn);
}

function sqsChecks(operation: string, input: JsonInput, stack: ResolvedStack): AccessCheck[] {
  const queueArn = (name: unknown) => `arn:aws:sqs:${REGION}:${ACCOUNT}:${String(name)}`;
  if (operation === 'StartMessageMoveTask') {
    const sources = ['StartMessageMoveTask', 'ReceiveMessage', 'DeleteMessage', 'GetQueueAttributes'].map((action) => ({
      action: `sqs:${action}`,
      resource: String(input.SourceArn),
    }));
    // Without a destination they go back to the queues whose dead letters they are.
    const destinations = input.DestinationArn
      ? [String(input.DestinationArn)]
      : redrivenTo(String(input.SourceArn), stack);
    return [...sources, ...destinations.map((resource) => ({ action: 'sqs:SendMessage', resource }))];
  }
  if (input.SourceArn !== undefined) return [{ action: `sqs:${operation}`, resource: String(input.SourceArn) }];
  const name = input.QueueName ?? (typeof input.QueueUrl === 'string' ? input.QueueUrl.split('/').at(-1) : undefined);
  // The batch operations have no action of their own.
  const action = `sqs:${operation.replace(/Batch$/, '')}`;
  return [{ action, resource: name === undefined ? '*' : queueArn(name) }];
}

function statesChecks(operation: string, input: JsonInput, stack: ResolvedStack): AccessCheck[] {
  const action = `states:${operation}`;
  if (operation.startsWith('SendTask')) {
    // AWS authorises on the machine that waits, which only the token knows: any machine of this stack will do.
    const machines = stack.ofType('AWS::StepFunctions::StateMachine').map((machine) => machine.arn);
    return [{ action, resource: [...machines, '*'] }];
  }
  const resource = input.executionArn ?? input.stateMachineArn ?? input.mapRunArn ?? input.resourceArn ?? '*';
  return [{ action, resource: String(resource) }];
}

function secretsManagerCheck(operation: string, input: JsonInput, stack: ResolvedStack): AccessCheck {
  const id = String(input.SecretId ?? input.Name ?? '*');
  const secrets = stack.ofType('AWS::SecretsManager::Secret');
  const prefix = `arn:aws:secretsmanager:${REGION}:${ACCOUNT}:secret:`;
  const known = secrets.find(({ arn }) => [id, `${id}-LOCAL1`, `${prefix}${id}-LOCAL1`].includes(arn));
  const context: ConditionContext = { 'secretsmanager:SecretId': id };
  if (typeof input.VersionStage === 'string') context['secretsmanager:VersionStage'] = input.VersionStage;
  const arn = known?.arn ?? (id.startsWith('arn:') || id === '*' ? id : prefix + id);
  return { action: `secretsmanager:${operation}`, resource: arn, context };
}

function kmsCheck(operation: string, input: JsonInput, stack: ResolvedStack): AccessCheck {
  const id = String(input.KeyId ?? '*');
  const context: ConditionContext = {};
  const alias = /(alias\/.+)$/.exec(id)?.[1];
  if (alias) context['kms:RequestAlias'] = alias;
  if (typeof input.SigningAlgorithm === 'string') context['kms:SigningAlgorithm'] = input.SigningAlgorithm;
  if (typeof input.MessageType === 'string') context['kms:MessageType'] = input.MessageType;
  const target = alias
    ? stack.ofType('AWS::KMS::Alias').find((resource) => resource.ref === alias)?.properties.TargetKeyId
    : id;
  const key = stack.ofType('AWS::KMS::Key').find(({ arn, ref }) => arn === target || ref === target);
  return { action: `kms:${operation}`, resource: key?.arn ?? id, context };
}
