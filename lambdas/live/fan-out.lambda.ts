import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from 'aws-lambda';
import { functionHandler } from '../entry/middy-handler.ts';
import { systemLog } from '../entry/system.ts';
import { newRowOf } from './dynamo-new-row.ts';
import { fanOut } from './fan-out.ts';
import { wireLive } from './live.wiring.ts';

const ports = { ...wireLive(), log: systemLog };

/** If the table cannot be read, Lambda sends the whole batch again, and then halves of it. */
export const handler = functionHandler<DynamoDBStreamEvent, DynamoDBBatchResponse>().handler(async ({ Records }) => {
  await fanOut(
    ports,
    Records.flatMap((record) => rowOf(record) ?? []),
  );
  return { batchItemFailures: [] };
});

function rowOf({ dynamodb }: DynamoDBRecord) {
  const image = dynamodb?.NewImage as Record<string, AttributeValue> | undefined;
  if (!image) return undefined;
  try {
    return newRowOf(image, dynamodb?.SequenceNumber ?? '');
  } catch (error) {
    // One row that cannot be read must not hold up the others. Clients read it over the API.
    systemLog.error('a row of the stream cannot be read', { sequenceNumber: dynamodb?.SequenceNumber, error });
    return undefined;
  }
}
