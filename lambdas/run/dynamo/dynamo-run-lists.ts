import { marshall } from '@aws-sdk/util-dynamodb';
import { listedField, type RunFilter } from '../run-filter.ts';
import { shortSubject } from '../subject.ts';
import { type Item, keyOf } from './dynamo-items.ts';
import * as keys from './dynamo-keys.ts';

/** The list of runs in which a filter is read. */
export function listFor(tenant: string, filter: RunFilter): keys.RunList {
  const field = listedField(filter);
  switch (field) {
    case undefined:
      return keys.RUN_LISTS.all(tenant);
    case 'overdue':
    case 'needsResolution':
      return keys.RUN_LISTS[field](tenant);
    case 'text':
      return keys.RUN_LISTS.titles(tenant);
    case 'subject':
      return keys.RUN_LISTS.subject(tenant, shortSubject(filter.subject ?? ''));
    default:
      return keys.RUN_LISTS[field](tenant, filter[field] ?? '');
  }
}

export const rangeOf = ({ since, until }: RunFilter) => ({
  from: since,
  upTo: until === undefined ? undefined : keys.createdUpTo(until),
});

export function titleHas(text: string, { sort }: keys.Index): (item: Item) => boolean {
  const wanted = text.toLowerCase();
  return (item) => keys.parseTitle(item[sort]?.S ?? '').includes(wanted);
}

/** Where a row is in an index: its sort key, which begins with a time, its run, and which row of the run it is. */
export const placeOf = (item: Item, { sort }: keys.Index): string => {
  const { pk, sk } = keyOf(item);
  return `${item[sort]?.S} ${keys.parseRunPartition(pk)?.runId} ${sk}`;
};
export const timeOf = (place: string): string => place.split(' ')[0] ?? '';

export function startAfter(place: string, tenant: string, { partition, sort }: keys.Index, value: string): Item {
  const parts = place.split(' ');
  const [runId = '', sk = keys.RUN_SORT_KEY] = parts.slice(-2);
  const sortKey = parts.slice(0, -2).join(' ');
  return marshall({ pk: keys.runPartition(tenant, runId), sk, [partition]: value, [sort]: sortKey });
}
