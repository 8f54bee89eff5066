import { useState } from 'react';
import { useLocation } from 'wouter';
import type { ResponseFrom } from '../../client/api-client.ts';
import { call, useApi } from '../data/api.ts';
import { Action, word } from '../parts/action.tsx';
import { TextArea, TextField } from '../parts/form.tsx';
import { Problem } from '../parts/problem.tsx';
import { Facts } from '../parts/section.tsx';
import { SubmitForm } from '../parts/submit.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { type Connection, CredentialState, TestConnection, TestResult } from './connections-page.tsx';
import { SettingsArea } from './settings-area.tsx';

type Tested = ResponseFrom<'POST /api/v1/connections/{name}/test'>;

export default function ConnectionPage({ name }: { name: string }) {
  const { data, error, refetch } = useApi('GET /api/v1/connections/{name}', { params: { name } });
  const [, go] = useLocation();
  const [tested, setTested] = useState<Tested>();
  if (!data) {
    return (
      <SettingsArea title="Connection">{error ? <Problem error={error} retry={refetch} /> : 'Loading …'}</SettingsArea>
    );
  }
  return (
    <SettingsArea
      title={name}
      description="Where an external system is, and whether its credentials are usable."
      actions={
        <div className="buttons">
          <TestConnection name={name} onTested={setTested} />
          <Action
            label="Delete the connection"
            effect={
              <p>
                Deletes <UntrustedText text={name} /> and its credentials. Runs that need it fail from then on.
              </p>
            }
            right="connections:write"
            command={() => `countersign connections delete ${word(name)}`}
            run={async () => {
              await call('DELETE /api/v1/connections/{name}', { params: { name } });
              go('/settings/connections');
              return `${name} and its credentials are deleted.`;
            }}
          />
        </div>
      }
    >
      {tested && <TestResult result={tested} />}
      <Facts
        facts={[
          ['Credential', <CredentialState key="credential" credential={data.credential} />],
          ['Credential of plans (reads only)', <CredentialState key="plan" credential={data.planCredential} />],
          ['Hosts that may be called', <UntrustedText key="hosts" text={data.allowedHosts?.join(', ') ?? '–'} />],
          ['Tables that may be used', <UntrustedText key="tables" text={data.allowedTables?.join(', ') ?? '–'} />],
        ]}
      />
      <ConnectionForm key={JSON.stringify(data)} connection={data} />
    </SettingsArea>
  );
}

function ConnectionForm({ connection }: { connection: Connection }) {
  const { name, allowedHosts, allowedTables } = connection;
  const [baseUrl, setBaseUrl] = useState(connection.baseUrl);
  const [instance, setInstance] = useState(connection.instance);
  // Not a draft: a secret is stored nowhere in the browser.
  const [credential, setCredential] = useState('');
  const save = async () => {
    const allowed = { ...(allowedHosts && { allowedHosts }), ...(allowedTables && { allowedTables }) };
    const body = { baseUrl, instance, ...allowed, ...(credential !== '' && { credential: parsed(credential) }) };
    const saved = await call('PUT /api/v1/connections/{name}', { params: { name }, body });
    return `${name} is saved. It takes effect within ${saved.effectiveWithinSeconds} s. Test it now.`;
  };
  return (
    <SubmitForm
      label="Change the connection"
      button="Save the connection"
      right="connections:write"
      command={`countersign connections add ${name}.yaml`}
      run={save}
    >
      <div className="form-columns">
        <TextField label="Address" value={baseUrl} onChange={setBaseUrl} />
        <TextField
          label="Instance"
          hint="It is part of the key of every write."
          value={instance}
          onChange={setInstance}
        />
      </div>
      <TextArea
        label="New credential, as JSON"
        optional
        mono
        rows={3}
        hint={'For example {"token": "…"}. Empty: it stays as it is. It is stored in Secrets Manager and never shown.'}
        value={credential}
        onChange={setCredential}
      />
    </SubmitForm>
  );
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Said below, without quoting the secret.
  }
  throw new Error('the credential is not a JSON object; write it like {"token": "…"}');
}
