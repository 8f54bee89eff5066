import Button from '@cloudscape-design/components/button';
import { useState } from 'react';
import type { RequestFor, ResponseFrom } from '../../client/api-client.ts';
import { useApi } from '../data/api.ts';
import { CommandLine, Copyable } from '../parts/copyable.tsx';
import { SelectField, TextField } from '../parts/form.tsx';
import { type Columns, PagedTable, usePages } from '../parts/paged-table.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { EmptyState } from '../parts/problem.tsx';
import { Section } from '../parts/section.tsx';
import { TextDiff } from '../parts/text-diff.tsx';
import { safeText, UntrustedText } from '../parts/untrusted-text.tsx';
import { useWhyNot } from '../parts/why-not.ts';
import { SettingsArea } from './settings-area.tsx';

type Change = ResponseFrom<'GET /api/v1/changes'>['changes'][number];
type Kind = NonNullable<NonNullable<RequestFor<'GET /api/v1/changes'>['query']>['kind']>;
const KINDS: Record<Kind, string> = {
  person: 'People',
  automation: 'Automations',
  configuration: 'Configurations',
  connection: 'Connections',
  credential: 'Credentials',
  policies: 'Policies',
  settings: 'Settings',
  workflow: 'Workflows',
  schedule: 'Schedules',
  webhook_source: 'Webhook sources',
  api_key: 'API keys',
  profile: 'Profiles of agents',
  agent: 'Agents',
  enrolment_token: 'Enrolment tokens of agents',
  history: 'The history itself',
};

export default function ChangesPage() {
  const whyNot = useWhyNot('changes:read');
  return (
    <SettingsArea
      title="History of changes"
      description="Who changed which definition, when, and what it was before. Entries never change."
    >
      {whyNot === undefined ? <Changes /> : <EmptyState title="You may not read the history">{whyNot}</EmptyState>}
    </SettingsArea>
  );
}

function Changes() {
  const [kind, setKind] = useState<Kind | ''>('');
  const [actor, setActor] = useState('');
  const [shown, setShown] = useState<string>();
  const pages = usePages(`${kind} ${actor}`);
  const filter = { ...(kind !== '' && { kind }), ...(actor !== '' && { actor }) };
  const list = useApi('GET /api/v1/changes', { query: { ...pages.query, ...filter } });
  const changes = list.data?.changes ?? [];
  const opened = changes.find(({ changeId }) => changeId === shown);
  return (
    <>
      <search className="form-columns">
        <SelectField
          label="Of"
          value={kind as Kind | ''}
          options={[
            { value: '', text: 'Everything' },
            ...Object.entries(KINDS).map(([value, text]) => ({ value: value as Kind, text })),
          ]}
          onChange={setKind}
        />
        <TextField label="Changed by" optional placeholder="ID of a person" value={actor} onChange={setActor} />
      </search>
      {opened && <ChangeDetail change={opened} onClose={() => setShown(undefined)} />}
      <PagedTable
        label="Changes"
        list={list}
        items={changes}
        columns={columnsFor(setShown)}
        trackBy={({ changeId }) => changeId}
        pages={pages}
        empty={
          <EmptyState title="No change matches">
            {list.data?.nextCursor ? 'Older changes may match: show the next page.' : 'Choose another kind or person.'}
          </EmptyState>
        }
      />
    </>
  );
}

const columnsFor = (show: (changeId: string) => void): Columns<Change> => [
  { id: 'at', header: 'Time', minWidth: 110, cell: ({ at }) => <PointInTime at={at} /> },
  {
    id: 'what',
    header: 'Changed',
    isRowHeader: true,
    minWidth: 200,
    cell: ({ kind, name, action, secretsSet = [] }) => (
      <>
        {kind.replace('_', ' ')} <UntrustedText text={name} max={100} /> {action}
        {secretsSet.length > 0 && (
          <>
            ; set <UntrustedText text={secretsSet.join(', ')} />
          </>
        )}
      </>
    ),
  },
  {
    id: 'by',
    header: 'By',
    minWidth: 110,
    cell: ({ actor, requestedBy }) => (
      <UntrustedText text={requestedBy === undefined ? actor : `${actor}, requested by ${requestedBy}`} />
    ),
  },
  {
    id: 'show',
    header: 'Before and after',
    minWidth: 120,
    cell: ({ changeId, name }) => (
      <Button ariaLabel={`Show: ${safeText(name)}`} onClick={() => show(changeId)}>
        Show
      </Button>
    ),
  },
];

function ChangeDetail({ change, onClose }: { change: Change; onClose(): void }) {
  const { kind, name, before, after, changeId, reason } = change;
  return (
    <Section title={`${kind.replace('_', ' ')} ${name}`} actions={<Button onClick={onClose}>Close</Button>}>
      {reason !== undefined && (
        <p>
          Reason: <UntrustedText text={reason} max={500} />
        </p>
      )}
      <TextDiff label="Before and after" before={textOf(before)} after={textOf(after)} />
      <p>
        <Copyable text={changeId} label="the ID of the change" />
      </p>
      <div className="on-command-line">
        On the command line: <CommandLine command={`countersign changes show ${changeId}`} />
      </div>
    </Section>
  );
}

const textOf = (definition: unknown): string =>
  definition === null || definition === undefined ? '' : JSON.stringify(definition, null, 2);
