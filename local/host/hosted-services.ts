import { WebSocketApi } from '../api-gateway/websocket-api.ts';
import { AwsError, type InvokeFunction } from '../aws/aws.ts';
import type { Services } from '../aws/aws-calls.ts';
import { LocalBedrock } from '../cloud/bedrock.ts';
import { LocalCloudWatch } from '../cloud/cloudwatch/cloudwatch.ts';
import { type KeyDefinition, LocalKms } from '../cloud/kms.ts';
import { LocalLambdaInvoke } from '../cloud/lambda-invoke.ts';
import { type BucketDefinition, LocalS3 } from '../cloud/s3.ts';
import { type ScheduleRule, startSchedules } from '../cloud/schedules.ts';
import { LocalSecretsManager, type SecretDefinition } from '../cloud/secrets-manager.ts';
import { LocalSqs, type QueueDefinition } from '../cloud/sqs/sqs.ts';
import { LocalStepFunctions } from '../cloud/step-functions/step-functions.ts';
import { LocalXray } from '../cloud/xray.ts';
import { TableStreams } from '../dynamodb/table-stream.ts';
import type { Iam } from '../iam/iam.ts';
import { startEventSources } from '../lambda/event-sources.ts';
import type { ResolvedResource, ResolvedStack } from '../template/template.ts';
import type { HostClock } from './clock.ts';
import { localSecretValue } from './seed.ts';

interface HostedOptions {
  stack: ResolvedStack;
  clock: HostClock;
  iam: Iam;
  dataFolder: string;
  invoke: InvokeFunction;
  log(source: string, line: string): void;
}

interface HostedServices extends Services {
  bedrock: LocalBedrock;
  xray: LocalXray;
  sockets: WebSocketApi;
  cloudWatch: LocalCloudWatch;
  /** No message waits to be received, dead letters aside. */
  queuesAreEmpty(): boolean;
  /** Starts the event sources and the schedules. */
  start(): { sweep(): Promise<void>; stop(): Promise<void> };
}

/** CloudFormation's defaults. */
const SQS_DEFAULTS = { visibilitySeconds: 30, retentionSeconds: 4 * 24 * 3600 };

/** Creates the services in this process from the resources of the template. */
export function hostedServices(options: HostedOptions): HostedServices {
  const { stack, clock, dataFolder } = options;
  const queues = stack.ofType('AWS::SQS::Queue').map(queue);
  const received = queues.filter(({ redrive }) => redrive);
  const sqs = new LocalSqs({ dataFolder, clock, queues });
  const cloudWatch = new LocalCloudWatch({ stack, clock, log: (line) => options.log('cloudwatch', line) });
  cloudWatch.sample((minutesMs) => {
    for (const { queueName: QueueName, visible, oldestSentMs } of sqs.measured()) {
      for (const atMs of minutesMs) {
        const put = (name: string, value: number) =>
          cloudWatch.metrics.put({ namespace: 'AWS/SQS', name, dimensions: { QueueName } }, value, atMs);
        put('ApproximateNumberOfMessagesVisible', visible);
        put('ApproximateAgeOfOldestMessage', Math.max(0, (atMs - (oldestSentMs ?? atMs)) / 1000));
      }
    }
  });
  const kms = new LocalKms({ dataFolder, keys: stack.ofType('AWS::KMS::Key').map(key) });
  const s3 = new LocalS3({ dataFolder, clock, buckets: stack.ofType('AWS::S3::Bucket').map(bucket), encryption: kms });
  const states = new LocalStepFunctions({
    dataFolder,
    clock,
    machines: stack.ofType('AWS::StepFunctions::StateMachine').map((machine) => stateMachine(machine, options)),
  });
  const secretsmanager = new LocalSecretsManager({
    dataFolder,
    clock,
    secrets: stack.ofType('AWS::SecretsManager::Secret').map(secret),
  });
  const bedrock = new LocalBedrock();
  const xray = new LocalXray();
  const streams = new TableStreams(stack, clock);
  const sockets = new WebSocketApi({ ...options, log: (line) => options.log('websocket', line) });
  const lambda = new LocalLambdaInvoke({
    functions: stack.ofType('AWS::Lambda::Function').map(({ ref, arn }) => ({ name: ref, arn })),
    invoke: options.invoke,
  });
  return {
    json: { sqs, states, secretsmanager, kms },
    rest: { s3, bedrock, lambda, xray, 'execute-api': sockets },
    xray,
    streams,
    bedrock,
    sockets,
    cloudWatch,
    queuesAreEmpty: () => received.every(({ arn }) => sqs.counts(arn).ready === 0),
    start() {
      const sources = startEventSources({ ...options, sqs, streams });
      const rules = stack.ofType('AWS::Events::Rule').map(rule);
      const schedules = startSchedules({
        clock,
        rules,
        invoke: scheduledInvoke(options, rules),
        onError: (error) => options.log('schedule', String(error)),
      });
      return {
        sweep: () => schedules.runAll(),
        async stop() {
          cloudWatch.stop();
          sockets.stop();
          await schedules.stop();
          states.stop();
          await Promise.all(sources.map((source) => source.stop()));
          sqs.close();
          s3.close();
        },
      };
    },
  };
}

function queue({ logicalId, arn, ref, properties, attributes }: ResolvedResource): QueueDefinition {
  if (properties.FifoQueue !== undefined) throw new Error(`${logicalId}: the local host does not support FIFO queues`);
  const redrive = properties.RedrivePolicy as { deadLetterTargetArn: string; maxReceiveCount: number } | undefined;
  return {
    logicalId,
    name: attributes.QueueName ?? logicalId,
    url: ref,
    arn,
    visibilityTimeoutSeconds: Number(properties.VisibilityTimeout ?? SQS_DEFAULTS.visibilitySeconds),
    delaySeconds: Number(properties.DelaySeconds ?? 0),
    retentionSeconds: Number(properties.MessageRetentionPeriod ?? SQS_DEFAULTS.retentionSeconds),
    ...(redrive && {
      redrive: { deadLetterArn: redrive.deadLetterTargetArn, maxReceiveCount: Number(redrive.maxReceiveCount) },
    }),
  };
}

function bucket({ logicalId, ref, properties }: ResolvedResource): BucketDefinition {
  const versioning = properties.VersioningConfiguration as { Status?: string } | undefined;
  const lock = properties.ObjectLockConfiguration as
    | { Rule?: { DefaultRetention?: { Mode: 'GOVERNANCE' | 'COMPLIANCE'; Days?: number } } }
    | undefined;
  const retention = lock?.Rule?.DefaultRetention;
  if (retention && retention.Days === undefined) {
    throw new Error(`${logicalId}: the local host supports Object Lock retention only in days`);
  }
  return {
    name: ref,
    versioned: versioning?.Status === 'Enabled',
    ...(retention && { defaultRetention: { mode: retention.Mode, days: Number(retention.Days) } }),
  };
}

function secret({ logicalId, arn, properties }: ResolvedResource): SecretDefinition {
  const name = String(properties.Name ?? arn);
  const initialValue = localSecretValue(name) ?? (properties.SecretString as string | undefined);
  const { ExcludePunctuation, SecretStringTemplate, GenerateStringKey, ...others } = (properties.GenerateSecretString ??
    {}) as { ExcludePunctuation?: boolean; SecretStringTemplate?: string; GenerateStringKey?: string };
  const [unsupported] = Object.keys(others);
  if (unsupported) throw new Error(`${logicalId}: the local host does not support GenerateSecretString.${unsupported}`);
  const generate = {
    excludePunctuation: ExcludePunctuation,
    secretStringTemplate: SecretStringTemplate,
    generateStringKey: GenerateStringKey,
  };
  return { arn, name, initialValue, ...(properties.GenerateSecretString !== undefined && { generate }) };
}

function key({ ref, arn, properties }: ResolvedResource): KeyDefinition {
  return {
    id: ref,
    arn,
    keySpec: String(properties.KeySpec ?? 'SYMMETRIC_DEFAULT'),
    keyUsage: String(properties.KeyUsage ?? 'ENCRYPT_DECRYPT'),
  };
}

function stateMachine(
  { logicalId, arn, attributes, properties }: ResolvedResource,
  { stack, iam, invoke }: HostedOptions,
) {
  const roleLogicalId = stack.byArn(String(properties.RoleArn))?.logicalId ?? '';
  const invokeAsRole: InvokeFunction = async (functionArn, event) => {
    const decision = iam.authorize({
      roleLogicalId,
      caller: logicalId,
      action: 'lambda:InvokeFunction',
      resource: functionArn,
    });
    if (!decision.allowed) throw new AwsError('AccessDeniedException', decision.message);
    return invoke(functionArn, event);
  };
  const definition = JSON.parse(String(properties.DefinitionString));
  return { logicalId, name: attributes.Name ?? logicalId, arn, definition, invoke: invokeAsRole };
}

function rule({ logicalId, arn, properties }: ResolvedResource): ScheduleRule {
  const targets = (properties.Targets ?? []) as { Arn: string; Input?: string }[];
  if (properties.State !== 'ENABLED' || targets.some(({ Input }) => Input !== undefined)) {
    throw new Error(`${logicalId}: the local host supports only enabled rules without an input of their own`);
  }
  return {
    logicalId,
    arn,
    expression: String(properties.ScheduleExpression),
    functionArns: targets.map(({ Arn }) => Arn),
  };
}

/** Invokes the target of a rule if EventBridge has the permission. */
function scheduledInvoke({ iam, invoke }: HostedOptions, rules: ScheduleRule[]): InvokeFunction {
  return async (functionArn, event) => {
    const sourceArn = rules.find(({ functionArns }) => functionArns.includes(functionArn))?.arn ?? '';
    const decision = iam.mayInvoke(functionArn, { principal: 'events.amazonaws.com', sourceArn });
    if (!decision.allowed) throw new AwsError('AccessDeniedException', decision.message);
    return invoke(functionArn, event);
  };
}
