import { DynamoDBClient, paginateScan } from '@aws-sdk/client-dynamodb';
import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import {
  DescribeExecutionCommand,
  GetExecutionHistoryCommand,
  ListExecutionsCommand,
  SFNClient,
} from '@aws-sdk/client-sfn';
import { ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { unmarshall } from '@aws-sdk/util-dynamodb';
import { canonicalJson } from '../../../lambdas/run/canonical-json.ts';
import { docOf } from '../../../lambdas/run/dynamo/dynamo-items.ts';
import type { TestHost } from './test-host.ts';

/** Messages that one request may bring. */
const RECEIVED_AT_ONCE = 10;

/** Something that is stored or shown: where, and its whole text. */
export interface Stored {
  where: string;
  text: string;
}

/** Everything that the system stores, as text: rows with unpacked payloads, objects, dead letters, executions, logs. */
export async function everythingStored(host: TestHost): Promise<Stored[]> {
  const stored = await Promise.all([rows(host), objects(host), deadLetters(host), executions(host)]);
  return [...stored.flat(), ...host.log.map((text) => ({ where: 'log', text }))];
}

export async function rows(host: TestHost): Promise<Stored[]> {
  const client = new DynamoDBClient(host.clientConfig());
  const found: Stored[] = [];
  for await (const { Items = [] } of paginateScan({ client }, { TableName: host.tableName })) {
    for (const item of Items) {
      const { doc: _packed, ...row } = unmarshall(item);
      const text = `${canonicalJson(row)} ${JSON.stringify(docOf(item))}`;
      found.push({ where: `row ${row.pk} ${row.sk}`, text });
    }
  }
  client.destroy();
  return found;
}

async function objects(host: TestHost): Promise<Stored[]> {
  const client = new S3Client(host.clientConfig());
  const found: Stored[] = [];
  for (const { ref: Bucket } of host.stack.ofType('AWS::S3::Bucket')) {
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket }));
    for (const { Key } of Contents) {
      const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
      found.push({ where: `object ${Key}`, text: (await Body?.transformToString()) ?? '' });
    }
  }
  client.destroy();
  return found;
}

async function deadLetters(host: TestHost): Promise<Stored[]> {
  const client = new SQSClient(host.clientConfig());
  const queues = host.stack.ofType('AWS::SQS::Queue').filter(({ logicalId }) => logicalId.includes('DeadLetters'));
  const received = queues.map(async ({ ref: QueueUrl, logicalId }) => {
    const asked = new ReceiveMessageCommand({
      QueueUrl,
      MaxNumberOfMessages: RECEIVED_AT_ONCE,
      VisibilityTimeout: 0,
    });
    const { Messages = [] } = await client.send(asked);
    return Messages.map((message) => ({ where: `dead letter ${logicalId}`, text: JSON.stringify(message) }));
  });
  const found = await Promise.all(received);
  client.destroy();
  return found.flat();
}

async function executions(host: TestHost): Promise<Stored[]> {
  const client = new SFNClient(host.clientConfig());
  const stateMachineArn = host.only('AWS::StepFunctions::StateMachine').arn;
  const { executions: listed = [] } = await client.send(new ListExecutionsCommand({ stateMachineArn }));
  const found: Stored[] = [];
  for (const { executionArn, name } of listed) {
    const { input, output, cause } = await client.send(new DescribeExecutionCommand({ executionArn }));
    const { events } = await client.send(new GetExecutionHistoryCommand({ executionArn }));
    found.push({ where: `execution ${name}`, text: JSON.stringify({ input, output, cause, events }) });
  }
  client.destroy();
  return found;
}
