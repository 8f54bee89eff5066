import type * as z from 'zod';
import { ACTIVE_STATUSES, type RunStatus, TERMINAL_STATUSES } from '../../run/run.ts';
import { listedField, type RunFilter } from '../../run/run-filter.ts';
import { EXAMINED_MAX, type RunStore } from '../../run/run-store.ts';
import type { RunCounts } from '../contract/runs/runs.ts';

/** Counting a status up to this reads about 250 KB of an index. */
export const COUNTED_MAX = 1_000;
/** Other filters count run by run: two requests for each page of 100. */
const COUNTED_PAGES_MAX = 5;

export const ALL_STATUSES: readonly RunStatus[] = [...ACTIVE_STATUSES, ...TERMINAL_STATUSES];

/** The number of matching runs by status. The result says what was not counted. */
export async function countRuns(
  runs: Pick<RunStore, 'countRuns' | 'listRuns'>,
  tenant: string,
  filter: RunFilter,
): Promise<z.input<typeof RunCounts>> {
  const { status, text } = filter;
  const field = listedField(filter);
  const byIndex = text === undefined && (field === undefined || (field === 'status' && isOnlyStatus(filter)));
  if (!byIndex) return countOneByOne(runs, tenant, filter);
  const statuses = status === undefined ? ALL_STATUSES : [status];
  const filters = statuses.map((each) => ({ ...filter, status: each }));
  const counted = await runs.countRuns(tenant, filters, COUNTED_MAX);
  const byStatus = statuses.flatMap((each, index) => {
    const { count = 0, atLeast } = counted[index] ?? {};
    return count === 0 ? [] : [{ status: each, count, ...(atLeast && { atLeast }) }];
  });
  return { byStatus };
}

const isOnlyStatus = ({ status: _status, since: _since, until: _until, ...others }: RunFilter): boolean =>
  Object.values(others).every((value) => value === undefined);

async function countOneByOne(runs: Pick<RunStore, 'listRuns'>, tenant: string, filter: RunFilter) {
  const counts = new Map<RunStatus, number>();
  let after: string | undefined;
  let countedBackTo: string | undefined;
  for (let page = 0; page < COUNTED_PAGES_MAX && (page === 0 || after !== undefined); page += 1) {
    const found = await runs.listRuns(tenant, { ...filter, limit: EXAMINED_MAX, after });
    for (const { status } of found.items) counts.set(status, (counts.get(status) ?? 0) + 1);
    after = found.next;
    countedBackTo = after === undefined ? undefined : (found.searchedBackTo ?? found.items.at(-1)?.createdAt);
  }
  const byStatus = ALL_STATUSES.flatMap((status) => {
    const count = counts.get(status);
    return count === undefined
      ? []
      : [{ status, count, ...(countedBackTo !== undefined && { atLeast: true as const }) }];
  });
  return { byStatus, ...(countedBackTo !== undefined && { countedBackTo }) };
}
