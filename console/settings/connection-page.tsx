import { useState } from 'react';
import { useLocation } from 'wouter';
import type { ResponseFrom } from '../../client/api-client.ts';
import { call, useApi } from '../data/api.ts';
import { Action, word } from '../parts/action.tsx';
import { Problem } from '../parts/problem.tsx';
import { Facts } from '../parts/section.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { ConnectionForm } from './connection-form.tsx';
import { CredentialState, TestConnection, TestResult } from './connections-page.tsx';
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
