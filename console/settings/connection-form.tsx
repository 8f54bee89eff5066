import { useState } from 'react';
import { call } from '../data/api.ts';
import { word } from '../parts/action.tsx';
import { useDraft } from '../parts/draft.ts';
import { TextArea, TextField } from '../parts/form.tsx';
import { SubmitForm } from '../parts/submit.tsx';
import type { Connection } from './connections-page.tsx';

const KNOWN = ['github', 'servicenow', 'slack', 'pagerduty', 'http'];

/** Adds a connection, or changes one. */
export function ConnectionForm({ connection, taken = [] }: { connection?: Connection; taken?: readonly string[] }) {
  const { name: existing, baseUrl = '', instance = '', allowedHosts, allowedTables } = connection ?? {};
  const [typed, setTyped, clear] = useDraft(`connection.${existing ?? ''}`, {
    name: existing ?? '',
    baseUrl,
    instance,
  });
  // Not a draft: a secret is stored nowhere in the browser.
  const [credential, setCredential] = useState('');
  const { name } = typed;
  const isComplete = name !== '' && typed.baseUrl !== '' && typed.instance !== '';
  const incomplete = isComplete ? undefined : 'Give a name, an address and an instance.';
  const save = async () => {
    const allowed = { ...(allowedHosts && { allowedHosts }), ...(allowedTables && { allowedTables }) };
    const where = { baseUrl: typed.baseUrl, instance: typed.instance };
    const body = { ...where, ...allowed, ...(credential !== '' && { credential: parsed(credential) }) };
    const saved = await call('PUT /api/v1/connections/{name}', { params: { name }, body });
    clear();
    setCredential('');
    return `${name} is saved. It takes effect within ${saved.effectiveWithinSeconds} s. Test it now.`;
  };
  return (
    <SubmitForm
      label={connection ? 'Change the connection' : 'Add a connection'}
      button={connection ? 'Save the connection' : 'Add the connection'}
      right="connections:write"
      disabledReason={taken.includes(name) ? `There is a connection ${name}: open it to change it.` : incomplete}
      command={`countersign connections add ${word(`${name || 'NAME'}.yaml`)}`}
      run={save}
    >
      <div className="form-columns">
        {!connection && (
          <TextField
            label="Connection"
            hint="The system that workflows name."
            suggestions={KNOWN}
            value={name}
            onChange={(text) => setTyped({ ...typed, name: text })}
          />
        )}
        <TextField
          label="Address"
          placeholder="https://api.github.com"
          value={typed.baseUrl}
          onChange={(text) => setTyped({ ...typed, baseUrl: text })}
        />
        <TextField
          label="Instance"
          hint="It is part of the key of every write."
          value={typed.instance}
          onChange={(text) => setTyped({ ...typed, instance: text })}
        />
      </div>
      <TextArea
        label={connection ? 'New credential, as JSON' : 'Credential, as JSON'}
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
