import { type Fields, isFields } from '../cloud/request-fields.ts';
import { invalid } from './attribute-values.ts';
import type { KeySchema, TableDefinition } from './item-store.ts';

interface KeyElement {
  AttributeName: string;
  KeyType: string;
}
interface IndexShape {
  IndexName: string;
  KeySchema: KeyElement[];
  Projection?: { ProjectionType?: string; NonKeyAttributes?: string[] };
}
export interface TableShape {
  AttributeDefinitions: { AttributeName: string; AttributeType: string }[];
  KeySchema: KeyElement[];
  GlobalSecondaryIndexes?: IndexShape[];
}

/** A table as CreateTable describes it. */
export function tableDefinition(name: string, shape: TableShape): TableDefinition {
  const other = shape.AttributeDefinitions.find(({ AttributeType }) => AttributeType !== 'S');
  if (other) throw invalid(`The local DynamoDB supports keys of text only; ${other.AttributeName} has another type`);
  const indexes = (shape.GlobalSecondaryIndexes ?? []).map((index) => [index.IndexName, indexSchema(index)]);
  return { name, ...keySchema(shape.KeySchema), indexes: Object.fromEntries(indexes) };
}

/** The indexes that UpdateTable creates. */
export function addedIndexes({ GlobalSecondaryIndexUpdates }: Fields): [string, KeySchema][] {
  return ((GlobalSecondaryIndexUpdates ?? []) as Fields[]).map(({ Create }) => {
    if (!isFields(Create)) throw invalid('The local DynamoDB only adds indexes to a table');
    const index = Create as unknown as IndexShape;
    return [index.IndexName, indexSchema(index)];
  });
}

function keySchema(elements: KeyElement[]): KeySchema {
  const named = (type: string) => elements.find(({ KeyType }) => KeyType === type)?.AttributeName;
  const partition = named('HASH');
  if (partition === undefined) throw invalid('No Hash Key specified in schema');
  return { partition, sort: named('RANGE') };
}

function indexSchema({ KeySchema: elements, Projection = {} }: IndexShape): KeySchema {
  const { ProjectionType = 'ALL', NonKeyAttributes = [] } = Projection;
  return { ...keySchema(elements), ...(ProjectionType !== 'ALL' && { projected: NonKeyAttributes }) };
}

export function describeTable({ name, indexes, ...keys }: TableDefinition) {
  return {
    Table: {
      TableName: name,
      TableStatus: 'ACTIVE',
      KeySchema: keyElements(keys),
      GlobalSecondaryIndexes: Object.entries(indexes).map(([IndexName, schema]) => ({
        IndexName,
        IndexStatus: 'ACTIVE',
        KeySchema: keyElements(schema),
        Projection: projection(schema),
      })),
    },
  };
}

const keyElements = ({ partition, sort }: KeySchema): KeyElement[] => [
  { AttributeName: partition, KeyType: 'HASH' },
  ...(sort === undefined ? [] : [{ AttributeName: sort, KeyType: 'RANGE' }]),
];

function projection({ projected }: KeySchema): IndexShape['Projection'] {
  if (!projected) return { ProjectionType: 'ALL' };
  return projected.length === 0
    ? { ProjectionType: 'KEYS_ONLY' }
    : { ProjectionType: 'INCLUDE', NonKeyAttributes: projected };
}
