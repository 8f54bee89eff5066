import { useState } from 'react';
import { Link } from 'wouter';
import { useApi } from '../data/api.ts';
import { SelectField, TextField } from '../parts/form.tsx';
import { Page } from '../parts/page.tsx';
import { type Columns, PagedTable, usePages } from '../parts/paged-table.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { EmptyState } from '../parts/problem.tsx';
import { hasEnded, RUN_STATUSES, type RunStatus, RunStatusText, type RunSummary } from '../parts/run-status.tsx';
import { Section } from '../parts/section.tsx';
import { Subject } from '../parts/subject.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { DropFiles } from './drop-files.tsx';

const ENDED = (Object.keys(RUN_STATUSES) as RunStatus[]).filter(hasEnded);

export default function EvidencePage() {
  return (
    <Page
      title="Evidence"
      description="Every run that ends leaves a signed bundle: what was decided, approved and written. Anyone can verify it offline."
    >
      <Section title="Verify a file">
        <DropFiles />
      </Section>
      <Section title="Find the evidence of a run">
        <EndedRuns />
      </Section>
    </Page>
  );
}

function EndedRuns() {
  const [status, setStatus] = useState<RunStatus>('succeeded');
  const [text, setText] = useState('');
  const [since, setSince] = useState('');
  const [until, setUntil] = useState('');
  const filter = {
    status,
    ...(text.trim() !== '' && { text: text.trim() }),
    ...(since !== '' && { since }),
    // The whole day, in UTC as the first day.
    ...(until !== '' && { until: `${until}T23:59:59.999Z` }),
  };
  const pages = usePages(JSON.stringify(filter));
  const list = useApi('GET /api/v1/runs', { query: { ...filter, ...pages.query } });
  return (
    <>
      <search className="form-columns">
        <SelectField
          label="Ended as"
          value={status}
          options={ENDED.map((value) => ({ value, text: RUN_STATUSES[value].text }))}
          onChange={setStatus}
        />
        <TextField label="Title contains" optional value={text} onChange={setText} />
        <TextField label="Accepted since" type="date" optional value={since} onChange={setSince} />
        <TextField label="Accepted until" type="date" optional value={until} onChange={setUntil} />
      </search>
      <PagedTable
        label="Ended runs"
        list={list}
        items={list.data?.runs ?? []}
        columns={COLUMNS}
        trackBy={({ runId }) => runId}
        pages={pages}
        empty={
          <EmptyState title="No run matches">
            {list.data?.nextCursor
              ? 'Older runs may match: show the next page.'
              : 'A run has evidence after it has ended. Choose another outcome or time.'}
          </EmptyState>
        }
      />
    </>
  );
}

const COLUMNS: Columns<RunSummary> = [
  {
    id: 'run',
    header: 'Evidence of',
    isRowHeader: true,
    minWidth: 220,
    cell: ({ runId, title, subject, automation }) => (
      <Link href={`/evidence/${encodeURIComponent(runId)}`}>
        <UntrustedText text={title ?? subject ?? automation} max={90} />
      </Link>
    ),
  },
  { id: 'status', header: 'Ended as', minWidth: 120, cell: ({ status }) => <RunStatusText status={status} /> },
  {
    id: 'ended',
    header: 'Ended',
    minWidth: 110,
    cell: ({ completedAt }) => (completedAt === null ? '–' : <PointInTime at={completedAt} />),
  },
  {
    id: 'automation',
    header: 'Automation',
    minWidth: 130,
    cell: ({ automation }) => <UntrustedText text={automation} max={63} />,
  },
  {
    id: 'subject',
    header: 'Subject',
    minWidth: 140,
    cell: ({ subject }) => (subject === null ? '–' : <Subject subject={subject} />),
  },
];
