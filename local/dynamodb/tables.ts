import {
  type AttributeDefinition,
  CreateTableCommand,
  DescribeTableCommand,
  DynamoDBClient,
  type GlobalSecondaryIndex,
  type KeySchemaElement,
  type LocalSecondaryIndex,
  ResourceNotFoundException,
  type StreamViewType,
  type TableDescription,
} from '@aws-sdk/client-dynamodb';
import { REGION } from '../aws/aws.ts';
import type { ResolvedResource, ResolvedStack } from '../template/template.ts';

/** DynamoDB Local keeps one database per access key, so the host and the gateway's proxy use the same one. */
export const ENGINE_ACCESS_KEY_ID = 'local';

interface TableShape {
  AttributeDefinitions: AttributeDefinition[];
  KeySchema: KeySchemaElement[];
  GlobalSecondaryIndexes?: GlobalSecondaryIndex[];
  LocalSecondaryIndexes?: LocalSecondaryIndex[];
  StreamSpecification?: { StreamViewType: StreamViewType };
}

export function tablesOf(stack: ResolvedStack): ResolvedResource[] {
  return stack.ofType('AWS::DynamoDB::Table', 'AWS::DynamoDB::GlobalTable');
}

/** Creates what is missing; a table that exists with other keys or indexes is refused, since its items would be lost. */
export async function createTables(url: string, stack: ResolvedStack): Promise<void> {
  const client = new DynamoDBClient({
    endpoint: url,
    region: REGION,
    credentials: { accessKeyId: ENGINE_ACCESS_KEY_ID, secretAccessKey: 'local' },
  });
  try {
    for (const table of tablesOf(stack)) await ensureTable(client, table, streamIsRead(stack));
  } finally {
    client.destroy();
  }
}

/** The engine searches all records of a stream on every write, so a stream that nobody reads would slow everything down. */
function streamIsRead(stack: ResolvedStack): boolean {
  const mappings = stack.ofType('AWS::Lambda::EventSourceMapping');
  return mappings.some(({ properties }) => String(properties.EventSourceArn).includes('/stream/'));
}

async function ensureTable(client: DynamoDBClient, table: ResolvedResource, withStream: boolean): Promise<void> {
  const wanted = table.properties as unknown as TableShape;
  const existing = await describe(client, table.ref);
  if (!existing) {
    await client.send(new CreateTableCommand(creation(table.ref, wanted, withStream)));
    return;
  }
  const [stored, expected] = [shapeText(existing), shapeText(wanted)];
  if (stored === expected) return;
  throw new Error(
    `the stored table ${table.ref} has other keys or indexes than ${table.logicalId} in the template; start with ` +
      `--fresh to begin with empty data\n  stored:   ${stored}\n  template: ${expected}`,
  );
}

async function describe(client: DynamoDBClient, name: string): Promise<TableDescription | undefined> {
  try {
    return (await client.send(new DescribeTableCommand({ TableName: name }))).Table;
  } catch (error) {
    if (error instanceof ResourceNotFoundException) return undefined;
    throw error;
  }
}

function creation(name: string, shape: TableShape, withStream: boolean) {
  const { AttributeDefinitions, KeySchema, GlobalSecondaryIndexes, LocalSecondaryIndexes, StreamSpecification } = shape;
  return {
    TableName: name,
    BillingMode: 'PAY_PER_REQUEST' as const,
    AttributeDefinitions,
    KeySchema,
    GlobalSecondaryIndexes: GlobalSecondaryIndexes?.map(({ IndexName, KeySchema, Projection }) => ({
      IndexName,
      KeySchema,
      Projection,
    })),
    LocalSecondaryIndexes,
    StreamSpecification:
      withStream && StreamSpecification ? { ...StreamSpecification, StreamEnabled: true } : undefined,
  };
}

/** Order of indexes does not matter; names, keys and projections do. */
function shapeText(shape: TableShape | TableDescription): string {
  const keys = (schema: KeySchemaElement[] = []) =>
    schema.map((key) => `${key.AttributeName}:${key.KeyType}`).join(',');
  const indexes = [...(shape.GlobalSecondaryIndexes ?? []), ...(shape.LocalSecondaryIndexes ?? [])]
    .map(({ IndexName, KeySchema, Projection }) => {
      const attributes = [...(Projection?.NonKeyAttributes ?? [])].sort();
      return `${IndexName}(${keys(KeySchema)} ${Projection?.ProjectionType ?? 'ALL'}${attributes.join(',')})`;
    })
    .sort();
  return [keys(shape.KeySchema), ...indexes].join(' ');
}
