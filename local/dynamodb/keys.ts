import { type AttributeValue, checkItem, type Item, invalid } from './attribute-values.ts';
import type { TableDefinition } from './item-store.ts';

export const keyNames = ({ partition, sort }: TableDefinition) => [partition, sort];

/** The key of the item itself, which has other attributes, too. */
export function keyIn({ partition, sort }: TableDefinition, item: Item): Item {
  return checkedKey({ partition, sort }, only(item, [partition, sort]));
}

/** A key without other attributes. */
export function keyOf(definition: TableDefinition, key: Item = {}): Item {
  const names = [definition.partition, definition.sort];
  if (Object.keys(key).some((name) => !names.includes(name))) {
    throw invalid('The provided key element does not match the schema');
  }
  return checkedKey(definition, key);
}

function checkedKey({ partition, sort }: Pick<TableDefinition, 'partition' | 'sort'>, key: Item): Item {
  for (const name of sort === undefined ? [partition] : [partition, sort]) {
    const value = key[name];
    if (typeof value?.S !== 'string') throw invalid('The provided key element does not match the schema');
    if (value.S === '') {
      throw invalid(
        `One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: ${name}`,
      );
    }
    checkKeySize(name === partition ? 'hashkey' : 'rangekey', value.S);
  }
  return key;
}

/** Of tables and indexes. */
const KEY_MAX_BYTES = { hashkey: 2_048, rangekey: 1_024 };

/** Refuses a key, or a value that is compared with a key, that is too long. */
export function checkKeySize(key: keyof typeof KEY_MAX_BYTES, value: string): void {
  if (Buffer.byteLength(value) <= KEY_MAX_BYTES[key]) return;
  throw invalid(
    `One or more parameter values were invalid: Size of ${key} has exceeded the maximum size limit of ${KEY_MAX_BYTES[key]} bytes`,
  );
}

export function keyUnchanged(key: Item, after: Item): void {
  const changed = Object.entries(key).find(([name, { S }]) => after[name]?.S !== S);
  if (changed) {
    throw invalid(
      `One or more parameter values were invalid: Cannot update attribute ${changed[0]}. This attribute is part of the key`,
    );
  }
}

/** Refuses keys of indexes that have another type or are too long. Returns the size of the item. */
export function checkIndexed({ indexes }: TableDefinition, item: Item): number {
  for (const [index, { partition, sort }] of Object.entries(indexes)) {
    for (const name of sort === undefined ? [partition] : [partition, sort]) {
      const value: AttributeValue | undefined = item[name];
      if (value === undefined) continue;
      if (typeof value.S !== 'string' || value.S === '') {
        throw invalid(`One or more parameter values were invalid: a key of the index ${index}, ${name}, must be text`);
      }
      checkKeySize(name === partition ? 'hashkey' : 'rangekey', value.S);
    }
  }
  return checkItem(item);
}

export function only(item: Item, names: readonly (string | undefined)[]): Item {
  const picked: Item = {};
  for (const name of names) {
    const value = name === undefined ? undefined : item[name];
    if (name !== undefined && value !== undefined) picked[name] = value;
  }
  return picked;
}
