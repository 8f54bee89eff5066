import { DescribeExecutionCommand, ListExecutionsCommand, SFNClient } from '@aws-sdk/client-sfn';
import { ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { describe, expect, it } from 'vitest';
import { AwsOutbox } from '../../lambdas/outbox/aws-outbox.ts';
import type { StartApproval } from '../../lambdas/outbox/outbox.ts';
import { SqsStepQueue } from '../../lambdas/run-changes/sqs-step-queue.ts';
import { LocalLambdaInvoke } from '../../local/cloud/lambda-invoke.ts';
import { LocalSqs, type QueueDefinition } from '../../local/cloud/sqs/sqs.ts';
import { LocalStepFunctions } from '../../local/cloud/step-functions/step-functions.ts';
import { HostClock } from '../../local/host/clock.ts';
import { FakeClock, STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { MemoryOutbox } from '../fakes/memory/memory-outbox.ts';
import { MemoryStepQueue } from '../fakes/memory/memory-step-queue.ts';
import { openWire, temporaryFolder } from '../local/cloud/wire.ts';
import { describeOutboxContract } from './outbox-contract.ts';
import { describeStepQueueContract } from './step-queue-contract.ts';

const queue = (name: string): QueueDefinition => ({
  logicalId: name,
  name,
  url: `http://127.0.0.1/000000000000/${name}`,
  arn: `arn:aws:sqs:us-east-1:000000000000:${name}`,
  visibilityTimeoutSeconds: 30,
  delaySeconds: 0,
  retentionSeconds: 345_600,
});
const steps = queue('steps');
const seals = queue('seals');
const follows = queue('follows');
const approvalMachineArn = 'arn:aws:states:us-east-1:000000000000:stateMachine:approvals';
/** No task token is used: an execution stays open, like an approval without a decision. */
const nobodyAnswers = {
  StartAt: 'Ask',
  States: {
    Ask: {
      Type: 'Task',
      Resource: 'arn:aws:states:::lambda:invoke.waitForTaskToken',
      Parameters: { FunctionName: 'ask', Payload: { 'token.$': '$$.Task.Token' } },
      ResultPath: null,
      End: true,
    },
  },
};

/** SQS and Step Functions of the local host behind the real SDK. */
async function openAws() {
  const folder = temporaryFolder();
  const clock = new HostClock(folder.path);
  const queues = new LocalSqs({ dataFolder: folder.path, clock, queues: [steps, seals, follows] });
  const machines = new LocalStepFunctions({
    dataFolder: folder.path,
    clock,
    machines: [
      {
        logicalId: 'Approvals',
        name: 'approvals',
        arn: approvalMachineArn,
        definition: nobodyAnswers,
        invoke: async () => ({}),
      },
    ],
  });
  const announced: StartApproval[] = [];
  const lambda = new LocalLambdaInvoke({
    functions: [{ name: 'announce', arn: 'arn:aws:lambda:us-east-1:000000000000:function:announce' }],
    invoke: async (_arn, event) => announced.push((event as { announce: StartApproval }).announce),
  });
  const wire = await openWire({ json: { AmazonSQS: queues, AWSStepFunctions: machines }, lambda });
  const sqs = new SQSClient(wire.client);
  const sfn = new SFNClient(wire.client);
  return {
    sqs,
    sfn,
    clock,
    announced,
    announceFunction: { functionName: 'announce', ...wire.client },
    received: async ({ url }: QueueDefinition) => {
      const all = { MaxNumberOfMessages: 10, MessageSystemAttributeNames: ['All' as const] };
      return (await sqs.send(new ReceiveMessageCommand({ QueueUrl: url, ...all }))).Messages ?? [];
    },
    close: async () => {
      sqs.destroy();
      sfn.destroy();
      await wire.close();
      queues.close();
      machines.stop();
      clock.stop();
      folder.remove();
    },
  };
}

describeStepQueueContract('memory', async () => {
  const clock = new FakeClock();
  const memory = new MemoryStepQueue(clock);
  return {
    queue: memory,
    receive: async () => memory.receive(),
    advance: (ms) => clock.advance(ms),
    clockRuns: false,
    close: async () => {},
  };
});
describeStepQueueContract('SQS', async () => {
  const aws = await openAws();
  return {
    queue: new SqsStepQueue(aws.sqs, steps.url),
    receive: async () => (await aws.received(steps)).map(({ Body }) => JSON.parse(Body ?? '')),
    advance: (ms) => aws.clock.advance(ms),
    clockRuns: true,
    close: aws.close,
  };
});

describe('SQS', () => {
  it('receives the tenant as message group, so that a busy tenant cannot delay another', async () => {
    const aws = await openAws();
    await new SqsStepQueue(aws.sqs, steps.url).send({ tenant: 'globex', runId: 'run_1' });
    expect((await aws.received(steps))[0]?.Attributes).toMatchObject({ MessageGroupId: 'globex' });
    await aws.close();
  });
});

describeOutboxContract('memory', async () => {
  const outbox = new MemoryOutbox();
  return {
    outbox,
    seals: async () => outbox.receiveSeals(),
    approvals: async () => outbox.startedApprovals(),
    announcements: async () => outbox.receiveAnnouncements(),
    follows: async () => outbox.receiveFollows(),
    digests: async () => outbox.receiveDigests(),
    close: async () => {},
  };
});
describeOutboxContract('AWS', async () => {
  const aws = await openAws();
  return {
    outbox: new AwsOutbox(
      aws.sqs,
      aws.sfn,
      {
        sealQueueUrl: seals.url,
        approvalQueueUrl: follows.url,
        approvalMachineArn,
        announceFunction: aws.announceFunction,
      },
      { now: () => Date.parse(STORY_BEGINS_AT) },
    ),
    announcements: async () => aws.announced.splice(0),
    seals: async () => (await aws.received(seals)).map(({ Body }) => JSON.parse(Body ?? '')),
    follows: async () => (await aws.received(follows)).map(({ Body }) => JSON.parse(Body ?? '')),
    digests: async () => (await aws.received(follows)).map(({ Body }) => JSON.parse(Body ?? '')),
    approvals: async () => {
      const { executions = [] } = await aws.sfn.send(
        new ListExecutionsCommand({ stateMachineArn: approvalMachineArn }),
      );
      const described = executions.map(({ executionArn }) =>
        aws.sfn.send(new DescribeExecutionCommand({ executionArn })),
      );
      // Only the state machine needs the lengths of the stages; approval-flow.test.ts is about them.
      return (await Promise.all(described)).map(({ input }) => {
        const { notifySeconds, remindSeconds, escalateSeconds, ...start } = JSON.parse(input ?? '');
        expect([notifySeconds, remindSeconds, escalateSeconds]).toEqual([1, 1, 1]);
        return start;
      });
    },
    close: aws.close,
  };
});
