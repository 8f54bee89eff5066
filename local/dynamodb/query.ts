import { type Item, invalid, itemBytes } from './attribute-values.ts';
import { Expressions, type References } from './expressions.ts';
import type { Range, TableDefinition } from './item-store.ts';
import { checkKeySize, only } from './keys.ts';

export interface Query extends References {
  TableName?: string;
  IndexName?: string;
  KeyConditionExpression?: string;
  ExclusiveStartKey?: Item;
  ScanIndexForward?: boolean;
  Limit?: number;
  Select?: string;
  ConsistentRead?: boolean;
}

/** DynamoDB's limit for one response. */
const PAGE_MAX_BYTES = 1024 * 1024;

/** As many items as fit into a response, and the key after which the next one begins. */
export function page(
  found: Iterable<Item>,
  keyNames: readonly (string | undefined)[],
  { Limit, Select }: Pick<Query, 'Limit' | 'Select'>,
) {
  const limit = Limit ?? Number.POSITIVE_INFINITY;
  if (limit < 1) throw invalid('Limit must be greater than or equal to 1');
  const Items: Item[] = [];
  let bytes = 0;
  let last: Item | undefined;
  for (const item of found) {
    bytes += itemBytes(item);
    if (bytes > PAGE_MAX_BYTES && Items.length > 0) {
      last = Items.at(-1);
      break;
    }
    Items.push(item);
    // As in DynamoDB, also if there is no further item.
    if (Items.length === limit) {
      last = item;
      break;
    }
  }
  return {
    ...(Select !== 'COUNT' && { Items }),
    Count: Items.length,
    ScannedCount: Items.length,
    ...(last && { LastEvaluatedKey: only(last, keyNames) }),
  };
}

export function rangeOf(definition: TableDefinition, query: Query): Range {
  const {
    IndexName: index,
    KeyConditionExpression,
    ExclusiveStartKey: after,
    ScanIndexForward: forward = true,
  } = query;
  const schema = index === undefined ? definition : definition.indexes[index];
  if (!schema) throw invalid(`The table does not have the specified index: ${index}`);
  if (index !== undefined && query.ConsistentRead) {
    throw invalid('Consistent reads are not supported on global secondary indexes');
  }
  const expressions = new Expressions(query, [schema.partition, schema.sort]);
  const { partition, sort } = expressions.key(KeyConditionExpression ?? '');
  expressions.checkAllUsed();
  if (partition.name !== schema.partition || (sort && sort.name !== schema.sort)) {
    throw invalid(`Query condition missed key schema element: ${schema.partition}`);
  }
  const values = [partition.value, ...(sort?.values ?? [])].map(({ S }, place) => {
    if (typeof S !== 'string')
      throw invalid('One or more parameter values were invalid: Condition parameter type does not match schema type');
    if (S === '') throw invalid('The AttributeValue for a key attribute cannot contain an empty string value');
    checkKeySize(place === 0 ? 'hashkey' : 'rangekey', S);
    return S;
  });
  const [partitionValue = '', ...sortValues] = values;
  return {
    index,
    partition: partitionValue,
    sort: sort ? sortConditions(sort.operator, sortValues) : [],
    forward,
    after,
  };
}

/** After every text that begins with a prefix, in the order of bytes. */
const LAST_CHARACTER = '\u{10ffff}';

function sortConditions(operator: string, [first = '', second = '']: string[]): Range['sort'] {
  if (operator === 'BETWEEN') {
    if (Buffer.compare(Buffer.from(first), Buffer.from(second)) > 0) {
      throw invalid('The BETWEEN operator requires upper bound to be greater than or equal to lower bound');
    }
    return [
      { sql: '>= ?', value: first },
      { sql: '<= ?', value: second },
    ];
  }
  if (operator === 'begins_with') {
    return [
      { sql: '>= ?', value: first },
      { sql: '<= ?', value: first + LAST_CHARACTER },
    ];
  }
  return [{ sql: `${operator} ?`, value: first }];
}
