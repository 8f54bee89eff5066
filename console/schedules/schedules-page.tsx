import Button from '@cloudscape-design/components/button';
import { Link, useLocation } from 'wouter';
import { EnabledState } from '../automations/automation.tsx';
import { useApi } from '../data/api.ts';
import { Page } from '../parts/page.tsx';
import { type Columns, PagedTable, usePages } from '../parts/paged-table.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { EmptyState } from '../parts/problem.tsx';
import { safeText, UntrustedText } from '../parts/untrusted-text.tsx';
import { useWhyNot } from '../parts/why-not.ts';
import { EnableOrDisable, type Schedule, timesOf } from './schedule.tsx';

export default function SchedulesPage() {
  const pages = usePages();
  const list = useApi('GET /api/v1/schedules', { query: pages.query });
  const [, go] = useLocation();
  const whyNot = useWhyNot('automations:write');
  return (
    <Page
      title="Schedules"
      description="When automations run without an event."
      actions={
        <Button
          disabled={whyNot !== undefined}
          {...(whyNot !== undefined && { disabledReason: safeText(whyNot) })}
          onClick={() => go('/new-schedule')}
        >
          Add a schedule
        </Button>
      }
    >
      <PagedTable
        label="Schedules"
        list={list}
        items={list.data?.schedules ?? []}
        columns={COLUMNS}
        trackBy={({ name }) => name}
        pages={pages}
        empty={
          <EmptyState title="There are no schedules yet">
            A schedule runs an automation at fixed times, for example every weekday at 9.
          </EmptyState>
        }
      />
    </Page>
  );
}

const COLUMNS: Columns<Schedule> = [
  {
    id: 'name',
    header: 'Schedule',
    isRowHeader: true,
    minWidth: 140,
    cell: ({ name }) => (
      <Link href={`/schedules/${encodeURIComponent(name)}`}>
        <UntrustedText text={name} max={63} />
      </Link>
    ),
  },
  { id: 'automation', header: 'Runs', minWidth: 140, cell: ({ automation }) => <UntrustedText text={automation} /> },
  { id: 'times', header: 'Times', minWidth: 150, cell: (each) => <UntrustedText text={timesOf(each)} /> },
  {
    id: 'next',
    header: 'Next run',
    minWidth: 110,
    cell: ({ nextRuns: [next] }) => (next === undefined ? 'none' : <PointInTime at={next} />),
  },
  { id: 'last', header: 'Last run', minWidth: 140, cell: lastOf },
  { id: 'state', header: 'State', minWidth: 100, cell: ({ enabled }) => <EnabledState isEnabled={enabled} /> },
  { id: 'action', header: 'Action', minWidth: 110, cell: (each) => <EnableOrDisable schedule={each} isRow /> },
];

function lastOf({ lastRun, lastError }: Schedule) {
  if (lastError && (!lastRun || lastError.slot > lastRun.slot)) {
    return <UntrustedText text={`failed: ${lastError.code}: ${lastError.message}`} max={160} />;
  }
  if (!lastRun) return 'never';
  return (
    <Link href={`/runs/${encodeURIComponent(lastRun.runId)}`}>
      <PointInTime at={lastRun.slot} />
    </Link>
  );
}
