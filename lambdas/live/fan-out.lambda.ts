import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from 'aws-lambda';
import { Cached } from '../entry/cached.ts';
import { functionHandler } from '../entry/middy-handler.ts';
import { systemClock, systemLog } from '../entry/system.ts';
import { newRowOf, removedPersonOf } from './dynamo-new-row.ts';
import { endConnectionsOf, fanOut } from './fan-out.ts';
import { wireLive } from './live.wiring.ts';

/** Who was removed is in the stream. This finds people whose record of the stream was lost, so it may be late. */
const PERSON_CACHED_MS = 30_000;

const wired = wireLive();
const people = new Cached<boolean>(PERSON_CACHED_MS, systemClock.now);
const ports = {
  ...wired,
  log: systemLog,
  isPerson: (tenant: string, person: string) => people.get(`${tenant}#${person}`, () => wired.isPerson(tenant, person)),
};

type Row = Record<string, AttributeValue>;

/** If the table cannot be read, Lambda sends the whole batch again, and then halves of it. */
export const handler = functionHandler<DynamoDBStreamEvent, DynamoDBBatchResponse>().handler(async ({ Records }) => {
  await endConnectionsOf(
    ports,
    Records.flatMap(({ eventName, dynamodb }) =>
      eventName === 'REMOVE' ? (removedPersonOf(dynamodb?.Keys as Row | undefined) ?? []) : [],
    ),
  );
  await fanOut(
    ports,
    Records.flatMap((record) => rowOf(record) ?? []),
  );
  return { batchItemFailures: [] };
});

function rowOf({ dynamodb }: DynamoDBRecord) {
  const image = dynamodb?.NewImage as Row | undefined;
  if (!image) return undefined;
  try {
    return newRowOf(image, dynamodb?.SequenceNumber ?? '');
  } catch (error) {
    // One row that cannot be read must not hold up the others. Clients read it over the API.
    systemLog.error('a row of the stream cannot be read', { sequenceNumber: dynamodb?.SequenceNumber, error });
    return undefined;
  }
}
