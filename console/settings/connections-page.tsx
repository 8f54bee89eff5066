import StatusIndicator from '@cloudscape-design/components/status-indicator';
import { useState } from 'react';
import { Link } from 'wouter';
import type { ResponseFrom } from '../../client/api-client.ts';
import { call, useApi } from '../data/api.ts';
import { Action, word } from '../parts/action.tsx';
import { CommandLine } from '../parts/copyable.tsx';
import { type Columns, PagedTable, usePages } from '../parts/paged-table.tsx';
import { EmptyState } from '../parts/problem.tsx';
import { Section } from '../parts/section.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { ConnectionForm } from './connection-form.tsx';
import { SettingsArea } from './settings-area.tsx';

export type Connection = ResponseFrom<'GET /api/v1/connections/{name}'>;
type Tested = ResponseFrom<'POST /api/v1/connections/{name}/test'>;

export default function ConnectionsPage() {
  const pages = usePages();
  const list = useApi('GET /api/v1/connections', { query: pages.query });
  const [tested, setTested] = useState<Readonly<Record<string, Tested>>>({});
  const columns: Columns<Connection> = [
    ...COLUMNS,
    {
      id: 'action',
      header: 'Action',
      minWidth: 110,
      cell: ({ name }) => (
        <TestConnection name={name} onTested={(result) => setTested({ ...tested, [name]: result })} />
      ),
    },
  ];
  return (
    <SettingsArea
      title="Connections"
      description="The external systems that workflows read and write. Credentials can be set and tested, never read."
    >
      <PagedTable
        label="Connections"
        list={list}
        items={list.data?.connections ?? []}
        columns={columns}
        trackBy={({ name }) => name}
        pages={pages}
        empty={
          <EmptyState title="There are no connections yet">
            Add the first one below, or with a file: <CommandLine command="countersign connections add github.yaml" />
          </EmptyState>
        }
      />
      <Section title="Add a connection">
        <ConnectionForm taken={(list.data?.connections ?? []).map(({ name }) => name)} />
      </Section>
      {Object.values(tested).map((result) => (
        <TestResult key={result.name} result={result} />
      ))}
    </SettingsArea>
  );
}

export function TestConnection({ name, onTested }: { name: string; onTested(result: Tested): void }) {
  return (
    <Action
      label="Test"
      confirm="Test the connection"
      about={name}
      effect={
        <p>
          Reads something harmless from <UntrustedText text={name} /> with its credentials. Nothing is written.
        </p>
      }
      right="connections:test"
      command={() => `countersign connections test ${word(name)}`}
      run={async () => {
        const result = await call('POST /api/v1/connections/{name}/test', { params: { name } });
        onTested(result);
        return result.ok ? `${name} works.` : `${name} was tested: it does not work. The result is below the list.`;
      }}
    />
  );
}

export function TestResult({ result: { name, ok, findings } }: { result: Tested }) {
  return (
    <Section title={ok ? `Test of ${name}: it works` : `Test of ${name}: it does not work`}>
      <ul className="plain-list findings">
        {findings.map(({ level, credential, text }) => (
          <li key={`${credential} ${text}`}>
            <StatusIndicator type={level === 'ok' ? 'success' : level}>
              {credential === 'credential' ? 'Credential' : 'Credential of plans'}
            </StatusIndicator>
            : <UntrustedText text={text} max={1_000} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

const CREDENTIALS = {
  set: { type: 'success', text: 'Set' },
  missing: { type: 'warning', text: 'Missing' },
  malformed: { type: 'error', text: 'Malformed' },
} as const;

export function CredentialState({ credential: { state, problem } }: { credential: Connection['credential'] }) {
  const { type, text } = CREDENTIALS[state];
  return (
    <StatusIndicator type={type}>
      {text}
      {problem !== undefined && (
        <>
          : <UntrustedText text={problem} />
        </>
      )}
    </StatusIndicator>
  );
}

const COLUMNS: Columns<Connection> = [
  {
    id: 'name',
    header: 'Connection',
    isRowHeader: true,
    minWidth: 120,
    cell: ({ name }) => (
      <Link href={`/settings/connections/${encodeURIComponent(name)}`}>
        <UntrustedText text={name} max={63} />
      </Link>
    ),
  },
  { id: 'url', header: 'Address', minWidth: 200, cell: ({ baseUrl }) => <UntrustedText text={baseUrl} max={120} /> },
  { id: 'instance', header: 'Instance', minWidth: 100, cell: ({ instance }) => <UntrustedText text={instance} /> },
  {
    id: 'credential',
    header: 'Credential',
    minWidth: 110,
    cell: ({ credential }) => <CredentialState credential={credential} />,
  },
  {
    id: 'plan',
    header: 'Credential of plans',
    minWidth: 130,
    cell: ({ planCredential }) => <CredentialState credential={planCredential} />,
  },
];
