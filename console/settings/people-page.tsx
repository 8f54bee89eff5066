import Button from '@cloudscape-design/components/button';
import { Link, useLocation } from 'wouter';
import type { ResponseFrom } from '../../client/api-client.ts';
import { useApi } from '../data/api.ts';
import { type Columns, PagedTable, usePages } from '../parts/paged-table.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { EmptyState } from '../parts/problem.tsx';
import { safeText, UntrustedText } from '../parts/untrusted-text.tsx';
import { useWhyNot } from '../parts/why-not.ts';
import { PendingChanges } from './pending-changes.tsx';
import { SettingsArea } from './settings-area.tsx';

export type Person = ResponseFrom<'GET /api/v1/people'>['people'][number];

export default function PeoplePage() {
  const pages = usePages();
  const list = useApi('GET /api/v1/people', { query: pages.query });
  const [, go] = useLocation();
  const whyNot = useWhyNot('people:write');
  const add = (
    <Button
      variant="primary"
      disabled={whyNot !== undefined}
      {...(whyNot !== undefined && { disabledReason: safeText(whyNot) })}
      onClick={() => go('/settings/people/add')}
    >
      Add a person
    </Button>
  );
  return (
    <SettingsArea title="People" description="Who may sign in, what they may do and approve." actions={add}>
      <PendingChanges />
      <PagedTable
        label="People"
        list={list}
        items={list.data?.people ?? []}
        columns={COLUMNS}
        trackBy={({ id }) => id}
        pages={pages}
        empty={<EmptyState title="There are no people yet">Add the people who start and approve runs.</EmptyState>}
      />
    </SettingsArea>
  );
}

const COLUMNS: Columns<Person> = [
  {
    id: 'name',
    header: 'Person',
    isRowHeader: true,
    minWidth: 160,
    cell: ({ id, name }) => (
      <Link href={`/settings/people/${encodeURIComponent(id)}`}>
        <UntrustedText text={name} max={100} />
      </Link>
    ),
  },
  { id: 'role', header: 'Role', minWidth: 100, cell: ({ role }) => role },
  { id: 'approves', header: 'Approves', minWidth: 140, cell: approves },
  {
    id: 'groups',
    header: 'Groups',
    minWidth: 120,
    cell: ({ groups }) => <UntrustedText text={groups.join(', ') || '–'} />,
  },
  {
    id: 'away',
    header: 'Away',
    minWidth: 140,
    cell: ({ away }) =>
      away ? (
        <>
          until <PointInTime at={away.until} />; <UntrustedText text={away.delegate} /> decides
        </>
      ) : (
        'no'
      ),
  },
  { id: 'id', header: 'ID', minWidth: 90, cell: ({ id }) => <UntrustedText text={id} /> },
];

function approves({ role, tier }: Person): string {
  if (role === 'owner' || role === 'admin') return 'every risk';
  return role === 'approver' ? `up to ${tier} risk` : 'nothing';
}
