import StatusIndicator from '@cloudscape-design/components/status-indicator';
import { useState } from 'react';
import type { ResponseFrom } from '../../client/api-client.ts';
import { call, useApi } from '../data/api.ts';
import { useMe } from '../data/me.ts';
import { Action, word } from '../parts/action.tsx';
import { NewSecret } from '../parts/new-secret.tsx';
import { type Columns, PagedTable, usePages } from '../parts/paged-table.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { EmptyState } from '../parts/problem.tsx';
import { Section } from '../parts/section.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { KeyForm } from './key-form.tsx';
import { SettingsArea } from './settings-area.tsx';

type ApiKey = ResponseFrom<'GET /api/v1/api-keys'>['apiKeys'][number];
export type CreatedKey = ResponseFrom<'POST /api/v1/api-keys'>;

export default function KeysPage() {
  const pages = usePages();
  const list = useApi('GET /api/v1/api-keys', { query: pages.query });
  const { data: me } = useMe();
  const [created, setCreated] = useState<CreatedKey>();
  const seesAll = me?.rights.includes('api-keys:read') ?? false;
  return (
    <SettingsArea
      title="API keys"
      description={
        seesAll ? 'The keys of all people and programs.' : 'Your own keys. Owners, admins and auditors see all keys.'
      }
    >
      {created && (
        <NewSecret kind="key" name={created.name} secret={created.key} onStored={() => setCreated(undefined)} />
      )}
      <PagedTable
        label="API keys"
        list={list}
        items={list.data?.apiKeys ?? []}
        columns={COLUMNS}
        trackBy={({ name }) => name}
        pages={pages}
        empty={
          <EmptyState title="There are no API keys">
            A key lets the command line or a program use the API. Create one below.
          </EmptyState>
        }
      />
      <Section title="Create a key">
        <KeyForm onCreated={setCreated} />
      </Section>
    </SettingsArea>
  );
}

const COLUMNS: Columns<ApiKey> = [
  { id: 'name', header: 'Key', isRowHeader: true, minWidth: 130, cell: ({ name }) => <UntrustedText text={name} /> },
  { id: 'of', header: 'Of', minWidth: 130, cell: holderOf },
  { id: 'role', header: 'Role', minWidth: 90, cell: ({ role }) => role },
  {
    id: 'used',
    header: 'Last used, by the hour',
    minWidth: 110,
    cell: ({ lastUsedAt }) => (lastUsedAt === undefined ? 'never' : <PointInTime at={lastUsedAt} />),
  },
  {
    id: 'expires',
    header: 'Expires',
    minWidth: 110,
    cell: ({ expiresAt, expired }) =>
      expired ? (
        <StatusIndicator type="stopped">Expired</StatusIndicator>
      ) : expiresAt === undefined ? (
        'never'
      ) : (
        <PointInTime at={expiresAt} />
      ),
  },
  { id: 'action', header: 'Action', minWidth: 110, cell: (key) => <RevokeKey name={key.name} /> },
];

function holderOf({ person, holder }: ApiKey) {
  if (holder === 'none') return <StatusIndicator type="error">Nobody: it is refused</StatusIndicator>;
  return (
    <>
      <UntrustedText text={person} />
      {holder === 'machine' && ' (program)'}
    </>
  );
}

function RevokeKey({ name }: { name: string }) {
  return (
    <Action
      label="Revoke"
      confirm="Revoke the key"
      about={name}
      effect={
        <p>
          Requests with the key <UntrustedText text={name} /> are refused at once. This cannot be undone.
        </p>
      }
      right="api-keys:own"
      command={() => `countersign keys revoke ${word(name)}`}
      run={async () => {
        await call('DELETE /api/v1/api-keys/{name}', { params: { name } });
        return `${name} is revoked.`;
      }}
    />
  );
}
