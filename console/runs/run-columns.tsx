import { Link } from 'wouter';
import { duration } from '../../bin/terminal/times.ts';
import { PointInTime } from '../parts/point-in-time.tsx';
import { RunStatusText, type RunSummary } from '../parts/run-status.tsx';
import { Subject } from '../parts/subject.tsx';
import type { Columns } from '../parts/table.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';

export const titleOf = ({ title, subject, automation }: RunSummary): string => title ?? subject ?? automation;

/** What a person recognises first; ids are on the page of the run. */
export const RUN_COLUMNS: Columns<RunSummary> = [
  {
    id: 'title',
    header: 'Run',
    isRowHeader: true,
    minWidth: 160,
    cell: (run) => (
      <Link href={`/runs/${encodeURIComponent(run.runId)}`}>
        <UntrustedText text={titleOf(run)} max={90} />
      </Link>
    ),
  },
  { id: 'status', header: 'Status', minWidth: 165, cell: ({ status }) => <RunStatusText status={status} /> },
  {
    id: 'automation',
    header: 'Automation',
    minWidth: 115,
    cell: ({ automation }) => <UntrustedText text={automation} max={60} isName />,
  },
  {
    id: 'subject',
    header: 'Subject',
    minWidth: 120,
    cell: ({ subject }) => (subject === null ? '–' : <Subject subject={subject} />),
  },
  { id: 'age', header: 'Accepted', minWidth: 80, cell: ({ createdAt }) => <PointInTime at={createdAt} /> },
  {
    id: 'duration',
    header: 'Took',
    minWidth: 65,
    noWrap: true,
    cell: ({ durationMs }) => (durationMs === null ? '–' : duration(durationMs)),
  },
  {
    id: 'who',
    header: 'Who',
    minWidth: 95,
    cell: ({ assignee, request, trigger }) => (
      <UntrustedText text={assignee ?? request?.actor ?? trigger.source} max={40} isName />
    ),
  },
  {
    id: 'error',
    header: 'Error',
    minWidth: 150,
    cell: ({ error }) =>
      error ? (
        <span className="code">
          <UntrustedText text={error.code} isName />
        </span>
      ) : (
        '–'
      ),
  },
];
