import { type Change, type RecordedChanges, timeOfChangeId } from './definition-changes.ts';

/** Changes of the first version have no time in their id, so they are searched in the newest part of the history. */
const SEARCH_CALLS_MAX = 3;

export async function findChange(
  history: Pick<RecordedChanges, 'changes'>,
  tenant: string,
  changeId: string,
): Promise<Change | undefined> {
  const at = timeOfChangeId(changeId);
  const filter = { changeId, ...(at !== undefined && { since: at, until: at }) };
  let found = await history.changes(tenant, { limit: 1 }, filter);
  for (let calls = 1; found.items.length === 0 && found.next !== undefined && calls < SEARCH_CALLS_MAX; calls += 1) {
    found = await history.changes(tenant, { limit: 1, after: found.next }, filter);
  }
  return found.items[0];
}
