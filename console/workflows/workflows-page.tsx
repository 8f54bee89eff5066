import Button from '@cloudscape-design/components/button';
import { Link, useLocation } from 'wouter';
import type { ResponseFrom } from '../../client/api-client.ts';
import { useApi } from '../data/api.ts';
import { Page } from '../parts/page.tsx';
import { type Columns, PagedTable, usePages } from '../parts/paged-table.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { EmptyState } from '../parts/problem.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';

type Workflow = ResponseFrom<'GET /api/v1/workflows'>['workflows'][number];

export default function WorkflowsPage() {
  const pages = usePages();
  const list = useApi('GET /api/v1/workflows', { query: pages.query });
  const [, go] = useLocation();
  return (
    <Page
      title="Workflows"
      description="What runs do, as YAML files. Each version stays as it was published."
      actions={<Button onClick={() => go('/new-workflow')}>Write a workflow</Button>}
    >
      <PagedTable
        label="Workflows"
        list={list}
        items={list.data?.workflows ?? []}
        columns={COLUMNS}
        trackBy={({ name }) => name}
        pages={pages}
        empty={
          <EmptyState title="There are no workflows yet">
            Write one here, or publish a file: <code>countersign workflow publish FILE</code>
          </EmptyState>
        }
      />
    </Page>
  );
}

const COLUMNS: Columns<Workflow> = [
  {
    id: 'name',
    header: 'Workflow',
    isRowHeader: true,
    minWidth: 160,
    cell: ({ name }) => (
      <Link href={`/workflows/${encodeURIComponent(name)}`}>
        <UntrustedText text={name} max={63} />
      </Link>
    ),
  },
  {
    id: 'description',
    header: 'What it does',
    minWidth: 220,
    cell: ({ description }) => <UntrustedText text={description ?? '–'} max={200} />,
  },
  { id: 'version', header: 'Newest version', minWidth: 90, cell: ({ version }) => version },
  { id: 'steps', header: 'Steps', minWidth: 70, cell: ({ steps }) => steps },
  {
    id: 'author',
    header: 'Published by',
    minWidth: 120,
    cell: ({ author }) => <UntrustedText text={author ?? '–'} />,
  },
  {
    id: 'at',
    header: 'Published',
    minWidth: 110,
    cell: ({ publishedAt }) => (publishedAt === null ? '–' : <PointInTime at={publishedAt} />),
  },
];
