import { REGION } from '../aws/aws.ts';
import type { HostClock } from '../host/clock.ts';
import type { ResolvedResource, ResolvedStack } from '../template/template.ts';
import { tablesOf } from './tables.ts';

type Attributes = Record<string, Record<string, unknown>>;

/** As Lambda receives it, without `SizeBytes`, which no function reads. `eventName` is undefined if a put may have replaced a row: only DynamoDB knows. */
export interface StreamRecord {
  eventID: string;
  eventName: 'INSERT' | 'MODIFY' | 'REMOVE' | undefined;
  eventVersion: string;
  eventSource: string;
  awsRegion: string;
  eventSourceARN: string;
  dynamodb: {
    ApproximateCreationDateTime: number;
    Keys: Attributes;
    NewImage?: Attributes;
    SequenceNumber: string;
    StreamViewType: string;
  };
}

interface Write {
  TableName?: string;
  Item?: Attributes;
  Key?: Attributes;
  ConditionExpression?: string;
  ExpressionAttributeNames?: Record<string, string>;
}

/**
 * The streams of tables, made from the writes that the AWS endpoint sees succeed: the streams of the engine would slow
 * every write. Records are in memory only: if the host is killed they are lost, and clients of the live feed read the commits
 * over the API.
 */
export class TableStreams {
  readonly #tables: ResolvedResource[];
  readonly #clock: HostClock;
  readonly #readers = new Map<string, ((record: StreamRecord) => void)[]>();
  #sequence = 0;

  constructor(stack: ResolvedStack, clock: HostClock) {
    this.#clock = clock;
    this.#tables = tablesOf(stack).filter(({ properties }) => {
      const { StreamViewType } = (properties.StreamSpecification ?? {}) as { StreamViewType?: string };
      return StreamViewType === 'NEW_IMAGE';
    });
  }

  /** Calls `take` for every later write to the table of the stream. */
  read(streamArn: string, take: (record: StreamRecord) => void): void {
    this.#readers.set(streamArn, [...(this.#readers.get(streamArn) ?? []), take]);
  }

  /** A call that DynamoDB has executed. */
  observe(operation: string, input: Record<string, unknown>): void {
    if (this.#readers.size === 0) return;
    if (operation === 'TransactWriteItems') {
      const items = (input.TransactItems ?? []) as { Put?: Write; Update?: Write; Delete?: Write }[];
      for (const { Put, Update, Delete } of items) {
        if (Put) this.#put(Put);
        else if (Update) this.#add(Update, 'MODIFY', Update.Key ?? {});
        else if (Delete) this.#add(Delete, 'REMOVE', Delete.Key ?? {});
      }
    } else if (operation === 'PutItem') this.#put(input as Write);
    else if (operation === 'UpdateItem') this.#add(input as Write, 'MODIFY', (input as Write).Key ?? {});
    else if (operation === 'DeleteItem') this.#add(input as Write, 'REMOVE', (input as Write).Key ?? {});
  }

  #put(write: Write): void {
    const { Item = {} } = write;
    this.#add(write, isInsert(write) ? 'INSERT' : undefined, Item, Item);
  }

  #add(write: Write, eventName: StreamRecord['eventName'], row: Attributes, NewImage?: Attributes): void {
    const table = this.#tables.find(({ ref, arn }) => write.TableName === ref || write.TableName === arn);
    const eventSourceARN = table?.attributes.StreamArn;
    const readers = eventSourceARN === undefined ? [] : (this.#readers.get(eventSourceARN) ?? []);
    if (!table || eventSourceARN === undefined || readers.length === 0) return;
    this.#sequence += 1;
    const SequenceNumber = String(this.#sequence).padStart(21, '0');
    const record: StreamRecord = {
      eventID: SequenceNumber,
      eventName,
      eventVersion: '1.1',
      eventSource: 'aws:dynamodb',
      awsRegion: REGION,
      eventSourceARN,
      dynamodb: {
        ApproximateCreationDateTime: Math.floor(this.#clock.now() / 1000),
        Keys: keysOf(table, row),
        ...(NewImage && { NewImage }),
        SequenceNumber,
        StreamViewType: 'NEW_IMAGE',
      },
    };
    for (const take of readers) take(record);
  }
}

/** A put under the condition that its key does not exist has created a row. */
function isInsert({ ConditionExpression = '', ExpressionAttributeNames = {} }: Write): boolean {
  const [, name = ''] = /^attribute_not_exists\(([#\w]+)\)$/.exec(ConditionExpression) ?? [];
  return ['pk', 'sk'].includes(ExpressionAttributeNames[name] ?? name);
}

function keysOf({ properties }: ResolvedResource, row: Attributes): Attributes {
  const keys: Attributes = {};
  for (const { AttributeName: name } of properties.KeySchema as { AttributeName: string }[]) {
    if (row[name]) keys[name] = row[name];
  }
  return keys;
}
