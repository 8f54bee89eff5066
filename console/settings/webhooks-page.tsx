import Button from '@cloudscape-design/components/button';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import { useState } from 'react';
import type { ResponseFrom } from '../../client/api-client.ts';
import { call, useApi } from '../data/api.ts';
import { Action, word } from '../parts/action.tsx';
import { Copyable } from '../parts/copyable.tsx';
import { SelectField, TextField } from '../parts/form.tsx';
import { type Columns, PagedTable, usePages } from '../parts/paged-table.tsx';
import { EmptyState, Problem } from '../parts/problem.tsx';
import { Section } from '../parts/section.tsx';
import { SubmitForm } from '../parts/submit.tsx';
import { Table } from '../parts/table.tsx';
import { safeText, UntrustedText } from '../parts/untrusted-text.tsx';
import { SettingsArea } from './settings-area.tsx';
import { type Source, SourceForm } from './source-form.tsx';

type Signing = ResponseFrom<'GET /api/v1/webhook-secrets'>['secrets'][number];
/** In a path, a colon separates `generic:alerts`: API Gateway decodes an escaped slash. */
const inPath = (source: string) => ({ source: source.replace('/', ':') });

/** Who may send webhooks: their signing secrets, and the sources that the tenant has defined. */
export default function WebhooksPage() {
  const signing = useApi('GET /api/v1/webhook-secrets', {});
  const pages = usePages();
  const sources = useApi('GET /api/v1/sources', { query: pages.query });
  const secrets = signing.data?.secrets ?? [];
  const own = sources.data?.sources ?? [];
  const senders = new Set([...secrets.map(({ source }) => source), ...own.map(({ name }) => `generic/${name}`)]);
  const [changed, setChanged] = useState<Source>();
  return (
    <SettingsArea title="Webhooks" description="Who sends events. Secrets can be set, never read.">
      {signing.error && <Problem error={signing.error} retry={() => signing.refetch()} />}
      <Section title="Signing secrets">
        <Table
          label="Signing secrets"
          items={secrets}
          columns={SECRET_COLUMNS}
          trackBy={({ source }) => source}
          isLoading={signing.isPending}
          empty={<EmptyState title="There are no signing secrets">Set one below.</EmptyState>}
        />
        {secrets.length > 0 && <SecretForm sources={[...senders]} />}
      </Section>
      <Section title="Sources of your own">
        <PagedTable
          label="Sources"
          list={sources}
          items={own}
          columns={sourceColumns(setChanged)}
          trackBy={({ name }) => name}
          pages={pages}
          empty={
            <EmptyState title="There are no sources of your own">
              A source is a program that sends signed webhooks. Add one below.
            </EmptyState>
          }
        />
      </Section>
      <Section title={changed ? `Change ${safeText(changed.name)}` : 'Add a source'}>
        <SourceForm key={changed?.name ?? ''} source={changed} onSaved={() => setChanged(undefined)} />
      </Section>
    </SettingsArea>
  );
}

const SECRET_COLUMNS: Columns<Signing> = [
  {
    id: 'source',
    header: 'Sender',
    isRowHeader: true,
    minWidth: 140,
    cell: ({ source }) => <UntrustedText text={source} />,
  },
  {
    id: 'state',
    header: 'Secret',
    minWidth: 220,
    cell: ({ usable, generated, problems }) =>
      usable === 0 ? (
        <StatusIndicator type="warning">
          None: its webhooks are refused. <UntrustedText text={problems.join(' ')} max={500} />
        </StatusIndicator>
      ) : (
        <StatusIndicator type="success">
          {usable === 1 ? 'Set' : `${usable}: the newest, and those before it`}
          {generated && ', generated'}
        </StatusIndicator>
      ),
  },
  {
    id: 'action',
    header: 'Action',
    minWidth: 150,
    cell: ({ source, usable }) => (
      <Action
        label="End the rotation"
        about={source}
        effect={<p>Only the newest secret stays valid. Webhooks that are signed with an older one are refused.</p>}
        right="connections:write"
        disabledReason={usable > 1 ? undefined : 'There is no older secret.'}
        command={() => `countersign webhook end-rotation ${word(source)}`}
        run={async () => {
          await call('DELETE /api/v1/webhook-secrets/{source}/previous', { params: inPath(source) });
          return `Only the newest secret of ${source} is valid.`;
        }}
      />
    ),
  },
];

function SecretForm({ sources }: { sources: readonly string[] }) {
  const [source, setSource] = useState(sources[0] ?? '');
  // Not a draft: a secret is stored nowhere in the browser.
  const [secret, setSecret] = useState('');
  return (
    <SubmitForm
      label="Set a signing secret"
      button="Set the secret"
      right="connections:write"
      disabledReason={secret === '' ? 'Type the secret.' : undefined}
      command={`countersign webhook set-secret ${word(source)}`}
      run={async () => {
        await call('PUT /api/v1/webhook-secrets/{source}', { params: inPath(source), body: { secret } });
        setSecret('');
        return `The secret of ${source} is set. The one before it stays valid until you end the rotation.`;
      }}
    >
      <div className="form-columns">
        <SelectField
          label="Sender"
          value={source}
          options={sources.map((value) => ({ value, text: value }))}
          onChange={setSource}
        />
        <TextField
          label="New secret"
          type="password"
          hint="Then set the same secret at the sender."
          value={secret}
          onChange={setSecret}
        />
      </div>
    </SubmitForm>
  );
}

const sourceColumns = (onChange: (source: Source) => void): Columns<Source> => [
  { id: 'name', header: 'Source', isRowHeader: true, minWidth: 120, cell: ({ name }) => <UntrustedText text={name} /> },
  {
    id: 'what',
    header: 'Description',
    minWidth: 160,
    cell: ({ description, enabled }) => (
      <UntrustedText text={`${description ?? '–'}${enabled ? '' : ' (disabled)'}`} max={200} />
    ),
  },
  {
    id: 'path',
    header: 'Address',
    minWidth: 220,
    cell: ({ path }) => <Copyable text={`${location.origin}${path}`} label="the address" />,
  },
  {
    id: 'action',
    header: 'Action',
    minWidth: 190,
    cell: (source) => (
      <div className="buttons">
        <Button ariaLabel={`Change: ${safeText(source.name)}`} onClick={() => onChange(source)}>
          Change
        </Button>
        <DeleteSource name={source.name} />
      </div>
    ),
  },
];

const DeleteSource = ({ name }: { name: string }) => (
  <Action
    label="Delete"
    confirm="Delete the source"
    about={name}
    effect={<p>Its webhooks are refused from then on. A source that an automation uses cannot be deleted.</p>}
    right="automations:write"
    command={() => `countersign sources delete ${word(name)}`}
    run={async () => {
      await call('DELETE /api/v1/sources/{name}', { params: { name } });
      return `${name} is deleted.`;
    }}
  />
);
