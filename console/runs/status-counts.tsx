import { Link } from 'wouter';
import type { ResponseFrom } from '../../client/api-client.ts';
import { PointInTime } from '../parts/point-in-time.tsx';
import { RUN_STATUSES, type RunStatus } from '../parts/run-status.tsx';
import { type RunQuery, searchOf } from './run-filter.ts';

type Counts = NonNullable<ResponseFrom<'GET /api/v1/runs'>['counts']>;

/** How many runs have each status. Each count is the filter for it. */
export function StatusCounts({ counts, filter }: { counts: Counts | undefined; filter: RunQuery }) {
  const found = new Map(counts?.byStatus.map((each) => [each.status, each]));
  const shown = (Object.keys(RUN_STATUSES) as RunStatus[]).filter((status) => (found.get(status)?.count ?? 0) > 0);
  const { status: _chosen, ...others } = filter;
  return (
    <nav aria-label="Runs by status" className="counts">
      <Link href={`/runs?${searchOf(others)}`} {...(filter.status === undefined && { 'aria-current': 'true' })}>
        All
      </Link>
      {shown.map((status) => (
        <Link
          key={status}
          href={`/runs?${searchOf({ ...others, status })}`}
          {...(filter.status === status && { 'aria-current': 'true' })}
        >
          {RUN_STATUSES[status].text}{' '}
          <b>
            {found.get(status)?.count}
            {found.get(status)?.atLeast && '+'}
          </b>
        </Link>
      ))}
      {counts?.countedBackTo !== undefined && (
        <small>
          counted back to <PointInTime at={counts.countedBackTo} />
        </small>
      )}
    </nav>
  );
}
