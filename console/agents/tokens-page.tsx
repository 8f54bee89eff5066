import { useState } from 'react';
import { Link } from 'wouter';
import type { ResponseFrom } from '../../client/api-client.ts';
import { call, useApi } from '../data/api.ts';
import { Action, word } from '../parts/action.tsx';
import { useDraft } from '../parts/draft.ts';
import { SelectField, TextField } from '../parts/form.tsx';
import { NewSecret } from '../parts/new-secret.tsx';
import { Page } from '../parts/page.tsx';
import { type Columns, PagedTable, usePages } from '../parts/paged-table.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { EmptyState } from '../parts/problem.tsx';
import { Section } from '../parts/section.tsx';
import { SubmitForm } from '../parts/submit.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { useWhyNot } from '../parts/why-not.ts';

type Token = ResponseFrom<'GET /api/v1/enrolment-tokens'>['enrolmentTokens'][number];
type Created = ResponseFrom<'POST /api/v1/enrolment-tokens'>;
type Environment = Token['environments'][number];

const ENVIRONMENTS: readonly Environment[] = ['dev', 'staging', 'prod'];

/** Tokens with which new agents enrol. */
export default function TokensPage() {
  const whyNot = useWhyNot('agents:write');
  return (
    <Page title="Enrolment tokens" description="A token enrols one agent, once.">
      {whyNot === undefined ? <Tokens /> : <EmptyState title="You may not enrol agents">{whyNot}</EmptyState>}
    </Page>
  );
}

function Tokens() {
  const pages = usePages();
  const list = useApi('GET /api/v1/enrolment-tokens', { query: pages.query });
  const [created, setCreated] = useState<Created>();
  return (
    <>
      {created && (
        <NewSecret kind="token" name={created.name} secret={created.token} onStored={() => setCreated(undefined)} />
      )}
      <PagedTable
        label="Enrolment tokens"
        list={list}
        items={list.data?.enrolmentTokens ?? []}
        columns={COLUMNS}
        trackBy={({ tokenId }) => tokenId}
        pages={pages}
        empty={
          <EmptyState title="There are no tokens">Create one below, then enrol the agent on its machine.</EmptyState>
        }
      />
      <Section title="Create a token">
        <TokenForm onCreated={setCreated} />
      </Section>
    </>
  );
}

const COLUMNS: Columns<Token> = [
  {
    id: 'name',
    header: 'For the agent',
    isRowHeader: true,
    minWidth: 130,
    cell: ({ name, agentId }) =>
      agentId === null ? (
        <UntrustedText text={name} max={63} />
      ) : (
        <Link href={`/agents/${encodeURIComponent(agentId)}`}>
          <UntrustedText text={name} max={63} />
        </Link>
      ),
  },
  {
    id: 'state',
    header: 'State',
    minWidth: 120,
    cell: ({ state, reused }) => (reused ? `${state}; used again (${reused.count}), perhaps stolen` : state),
  },
  { id: 'for', header: 'Environments', minWidth: 110, cell: ({ environments }) => environments.join(', ') },
  { id: 'by', header: 'Created by', minWidth: 100, cell: ({ createdBy }) => <UntrustedText text={createdBy} /> },
  { id: 'expires', header: 'Expires', minWidth: 100, cell: ({ expiresAt }) => <PointInTime at={expiresAt} /> },
  {
    id: 'action',
    header: 'Action',
    minWidth: 110,
    cell: ({ tokenId, name, state }) => (
      <Action
        label="Revoke"
        confirm="Revoke the token"
        about={name}
        effect={<p>No agent can enrol with it any more.</p>}
        right="agents:write"
        disabledReason={state === 'open' ? undefined : `It is ${state} already.`}
        command={() => `countersign agents revoke-token ${word(tokenId)}`}
        run={async () => {
          await call('DELETE /api/v1/enrolment-tokens/{id}', { params: { id: tokenId } });
          return `The token for ${name} is revoked.`;
        }}
      />
    ),
  },
];

function TokenForm({ onCreated }: { onCreated(created: Created): void }) {
  const [typed, setTyped, clear] = useDraft('agent-token', {
    name: '',
    environment: 'dev' as Environment,
    segment: '',
  });
  const { name, environment, segment } = typed;
  const create = async () => {
    const body = { name, environments: [environment], networkSegment: segment === '' ? null : segment };
    onCreated(await call('POST /api/v1/enrolment-tokens', { body }));
    clear();
    return undefined;
  };
  return (
    <SubmitForm
      label="Create a token"
      button="Create the token"
      right="agents:write"
      disabledReason={name === '' ? 'Give the agent a name.' : undefined}
      command={`countersign agents token ${word(name || 'NAME')} --environment ${environment}${segment === '' ? '' : ` --segment ${word(segment)}`}`}
      run={create}
    >
      <div className="form-columns">
        <TextField
          label="Name of the agent"
          placeholder="payments-1"
          hint="Lower-case letters, digits, dots and dashes."
          maxLength={63}
          value={name}
          onChange={(text) => setTyped({ ...typed, name: text })}
        />
        <SelectField
          label="Environment"
          hint="The environments in which the agent may run commands."
          value={environment}
          options={ENVIRONMENTS.map((value) => ({ value, text: value }))}
          onChange={(chosen) => setTyped({ ...typed, environment: chosen })}
        />
        <TextField
          label="Network segment"
          optional
          placeholder="vpc-a"
          value={segment}
          onChange={(text) => setTyped({ ...typed, segment: text })}
        />
      </div>
    </SubmitForm>
  );
}
