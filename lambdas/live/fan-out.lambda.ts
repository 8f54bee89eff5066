import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { DynamoDBBatchResponse, DynamoDBStreamEvent } from 'aws-lambda';
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
    Records.flatMap(({ dynamodb }) =>
      dynamodb?.NewImage ? (newRowOf(dynamodb.NewImage as Row, dynamodb.SequenceNumber ?? '') ?? []) : [],
    ),
  );
  return { batchItemFailures: [] };
});
