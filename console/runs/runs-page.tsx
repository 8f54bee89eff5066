import Button from '@cloudscape-design/components/button';
import PropertyFilter from '@cloudscape-design/components/property-filter';
import { useEffect, useState } from 'react';
import { useLocation, useSearch } from 'wouter';
import { useLive } from '../data/live.ts';
import { SampleEvents } from '../inbox/sample-events.tsx';
import { Page } from '../parts/page.tsx';
import { EmptyState, Problem } from '../parts/problem.tsx';
import { Table } from '../parts/table.tsx';
import { BulkActions } from './bulk-actions.tsx';
import { RUN_COLUMNS } from './run-columns.tsx';
import {
  FILTER_PROPERTIES,
  filterOf,
  filterOfTokens,
  filterOptions,
  type RunQuery,
  searchOf,
  tokensOf,
} from './run-filter.ts';
import { SavedViews } from './saved-views.tsx';
import { StatusCounts } from './status-counts.tsx';

const PAGE_SIZE = 50;

export default function RunsPage() {
  const filter = filterOf(useSearch());
  const [, go] = useLocation();
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const cursor = cursors.at(-1);
  const search = searchOf(filter);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another filter begins at its first page
  useEffect(() => setCursors([]), [search]);
  const list = useLive(
    'GET /api/v1/runs',
    { query: { ...filter, limit: PAGE_SIZE, counts: 'true', ...(cursor !== undefined && { cursor }) } },
    // Later pages stay as they are: rows that move while somebody reads them would be confusing.
    { topic: 'tenant', ended: cursor !== undefined },
  );
  const runs = list.data?.runs ?? [];
  const show = (next: RunQuery) => go(`/runs?${searchOf(next)}`);

  return (
    <Page
      title="Runs"
      description="Every run of your workflows, the newest first. The list is live."
      actions={<SavedViews filter={filter} onShow={show} />}
    >
      <StatusCounts counts={list.data?.counts} filter={filter} />
      {list.error && <Problem error={list.error} retry={() => list.refetch()} />}
      <search className="runs-filter">
        <PropertyFilter
          query={tokensOf(filter)}
          onChange={({ detail }) => show(filterOfTokens(detail))}
          filteringProperties={FILTER_PROPERTIES}
          filteringOptions={filterOptions({
            automation: runs.map(({ automation }) => automation),
            workflow: runs.map(({ workflow }) => workflow.name),
            subject: runs.flatMap(({ subject }) => subject ?? []),
            assignee: runs.flatMap(({ assignee }) => assignee ?? []),
            errorCode: runs.flatMap(({ error }) => error?.code ?? []),
          })}
          hideOperations
          freeTextFiltering={{ operators: [':'], defaultOperator: ':' }}
          filteringPlaceholder="Find runs by title, status, automation, subject …"
          filteringAriaLabel="Find runs"
          i18nStrings={FILTER_TEXTS}
        />
      </search>
      <BulkActions filter={filter} key={search} />
      <div className="runs-table">
        <Table
          label="Runs"
          items={runs}
          trackBy={({ runId }) => runId}
          columns={RUN_COLUMNS}
          isLoading={list.isPending}
          empty={
            search === '' ? (
              <EmptyState title="There are no runs yet" action={<SampleEvents />}>
                A webhook, a schedule, the API or “Run now” starts a run.
              </EmptyState>
            ) : (
              <EmptyState
                title="No run matches this filter"
                action={<Button onClick={() => show({})}>Clear the filter</Button>}
              >
                {list.data?.searchedBackTo !== undefined && 'Older runs may match: show the next page.'}
              </EmptyState>
            )
          }
        />
      </div>
      <div className="pager">
        <Button disabled={cursors.length === 0} onClick={() => setCursors(cursors.slice(0, -1))}>
          Newer
        </Button>
        <Button
          disabled={!list.data?.nextCursor}
          onClick={() => list.data?.nextCursor && setCursors([...cursors, list.data.nextCursor])}
        >
          Older
        </Button>
      </div>
    </Page>
  );
}

const FILTER_TEXTS = {
  groupValuesText: 'Values',
  groupPropertiesText: 'Fields',
  operatorsText: 'Operators',
  operationAndText: 'and',
  operationOrText: 'or',
  operatorEqualsText: 'is',
  operatorContainsText: 'Contains',
  editTokenHeader: 'Change the filter',
  propertyText: 'Field',
  operatorText: 'Operator',
  valueText: 'Value',
  cancelActionText: 'Cancel',
  applyActionText: 'Apply',
  clearFiltersText: 'Clear the filter',
  removeTokenButtonAriaLabel: (token: { propertyLabel?: string; value: string }) =>
    `Remove ${token.propertyLabel ?? 'text'} ${token.value}`,
  enteredTextLabel: (text: string) => `Title contains “${text}”`,
  clearAriaLabel: 'Clear',
};
