import Button from '@cloudscape-design/components/button';
import { Link, useLocation } from 'wouter';
import { useApi } from '../data/api.ts';
import { Page } from '../parts/page.tsx';
import { type Columns, PagedTable, usePages } from '../parts/paged-table.tsx';
import { EmptyState } from '../parts/problem.tsx';
import { safeText, UntrustedText } from '../parts/untrusted-text.tsx';
import { useWhyNot } from '../parts/why-not.ts';
import { type Automation, EnabledState, EnableOrDisable, eventOf } from './automation.tsx';

export default function AutomationsPage() {
  const pages = usePages();
  const list = useApi('GET /api/v1/automations', { query: pages.query });
  const [, go] = useLocation();
  const whyNot = useWhyNot('automations:write');
  return (
    <Page
      title="Automations"
      description="Which event starts which version of which workflow, or which session."
      actions={
        <Button
          disabled={whyNot !== undefined}
          {...(whyNot !== undefined && { disabledReason: safeText(whyNot) })}
          onClick={() => go('/new-automation')}
        >
          Add an automation
        </Button>
      }
    >
      <PagedTable
        label="Automations"
        list={list}
        items={list.data?.automations ?? []}
        columns={COLUMNS}
        trackBy={({ name }) => name}
        pages={pages}
        empty={
          <EmptyState title="There are no automations yet">
            Publish a workflow first, then add an automation that says which event starts it.
          </EmptyState>
        }
      />
    </Page>
  );
}

const COLUMNS: Columns<Automation> = [
  {
    id: 'name',
    header: 'Automation',
    isRowHeader: true,
    minWidth: 160,
    cell: ({ name }) => (
      <Link href={`/automations/${encodeURIComponent(name)}`}>
        <UntrustedText text={name} max={63} />
      </Link>
    ),
  },
  {
    id: 'description',
    header: 'What it is for',
    minWidth: 200,
    cell: ({ description }) => <UntrustedText text={description ?? '–'} max={200} />,
  },
  { id: 'event', header: 'Started by', minWidth: 150, cell: (each) => <UntrustedText text={eventOf(each)} /> },
  {
    id: 'workflow',
    header: 'Workflow',
    minWidth: 150,
    cell: ({ workflow: { name, version } }) => (
      <Link href={`/workflows/${encodeURIComponent(name)}`}>
        <UntrustedText text={`${name}, version ${version}`} />
      </Link>
    ),
  },
  { id: 'state', header: 'State', minWidth: 100, cell: ({ enabled }) => <EnabledState isEnabled={enabled} /> },
  { id: 'action', header: 'Action', minWidth: 110, cell: (each) => <EnableOrDisable automation={each} isRow /> },
];
