import type * as z from 'zod';
import { Problem } from '../../entry/http.ts';
import type { RunFilter } from '../../run/run-filter.ts';
import type { RunFilterQuery } from '../contract/runs/runs.ts';

/** The filter that a request describes. `false` means the same as a field that is not set. */
export function runFilter(query: z.output<typeof RunFilterQuery>): RunFilter {
  const { overdue, needsResolution, since, until, ...fields } = query;
  const filter: RunFilter = {
    ...fields,
    ...(overdue === 'true' && { overdue: true }),
    ...(needsResolution === 'true' && { needsResolution: true }),
    ...(since !== undefined && { since: utc(since) }),
    ...(until !== undefined && { until: utc(until) }),
  };
  if (filter.since !== undefined && filter.until !== undefined && filter.since > filter.until) {
    throw new Problem(400, 'BAD_REQUEST', `since (${since}) is later than until (${until}); exchange them`);
  }
  return filter;
}

/** As rows store times, so that texts compare like times. */
const utc = (time: string): string => new Date(time).toISOString();
