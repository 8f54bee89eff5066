import {
  type AttributeDefinition,
  CreateTableCommand,
  DescribeTableCommand,
  DynamoDBClient,
  type GlobalSecondaryIndex,
  type KeySchemaElement,
  ResourceNotFoundException,
  type TableDescription,
  UpdateTableCommand,
} from '@aws-sdk/client-dynamodb';
import { REGION } from '../aws/aws.ts';
import type { ResolvedResource, ResolvedStack } from '../template/template.ts';

/** DynamoDB Local has one database per access key, so the host and the proxy use the same key. */
export const ENGINE_ACCESS_KEY_ID = 'local';

interface TableShape {
  AttributeDefinitions: AttributeDefinition[];
  KeySchema: KeySchemaElement[];
  GlobalSecondaryIndexes?: GlobalSecondaryIndex[];
}

export function tablesOf(stack: ResolvedStack): readonly ResolvedResource[] {
  return stack.ofType('AWS::DynamoDB::GlobalTable');
}

/**
 * Creates missing tables and, as CloudFormation does, adds indexes to a stored table. Refuses any other difference, because
 * replacing the table would lose its items.
 */
export async function createTables(url: string, stack: ResolvedStack): Promise<void> {
  const client = new DynamoDBClient({
    endpoint: url,
    region: REGION,
    credentials: { accessKeyId: ENGINE_ACCESS_KEY_ID, secretAccessKey: 'local' },
  });
  try {
    for (const table of tablesOf(stack)) await ensureTable(client, table);
  } finally {
    client.destroy();
  }
}

async function ensureTable(client: DynamoDBClient, table: ResolvedResource): Promise<void> {
  const wanted = table.properties as unknown as TableShape;
  const existing = await describe(client, table.ref);
  if (!existing) {
    await client.send(new CreateTableCommand(creation(table.ref, wanted)));
    return;
  }
  const expected = shapeText(wanted);
  if (shapeText(existing) === expected) return;
  const known = new Set(existing.GlobalSecondaryIndexes?.map(({ IndexName }) => IndexName));
  const added = (wanted.GlobalSecondaryIndexes ?? []).filter(({ IndexName }) => !known.has(IndexName));
  const asBefore = {
    ...wanted,
    GlobalSecondaryIndexes: wanted.GlobalSecondaryIndexes?.filter((each) => !added.includes(each)),
  };
  const stored = shapeText(existing);
  if (shapeText(asBefore) === stored) {
    for (const index of added) await addIndex(client, table.ref, wanted, index);
    return;
  }
  throw new Error(
    `the stored table ${table.ref} has other keys or indexes than ${table.logicalId} in the template; start with ` +
      `--fresh to delete the stored data\n  stored:   ${stored}\n  template: ${expected}`,
  );
}

async function addIndex(client: DynamoDBClient, name: string, wanted: TableShape, index: GlobalSecondaryIndex) {
  const { IndexName, KeySchema, Projection } = index;
  await client.send(
    new UpdateTableCommand({
      TableName: name,
      AttributeDefinitions: wanted.AttributeDefinitions,
      GlobalSecondaryIndexUpdates: [{ Create: { IndexName, KeySchema, Projection } }],
    }),
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

function creation(name: string, { AttributeDefinitions, KeySchema, GlobalSecondaryIndexes }: TableShape) {
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
  };
}

/** Keys and indexes as text, independent of the order of the indexes. */
function shapeText(shape: TableShape | TableDescription): string {
  const keys = (schema: KeySchemaElement[] = []) =>
    schema.map((key) => `${key.AttributeName}:${key.KeyType}`).join(',');
  const indexes = (shape.GlobalSecondaryIndexes ?? [])
    .map(({ IndexName, KeySchema, Projection }) => {
      const attributes = [...(Projection?.NonKeyAttributes ?? [])].sort();
      return `${IndexName}(${keys(KeySchema)} ${Projection?.ProjectionType ?? 'ALL'}${attributes.join(',')})`;
    })
    .sort();
  return [keys(shape.KeySchema), ...indexes].join(' ');
}
