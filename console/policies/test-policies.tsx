import StatusIndicator from '@cloudscape-design/components/status-indicator';
import { useState } from 'react';
import type { ResponseFrom } from '../../client/api-client.ts';
import { call } from '../data/api.ts';
import { useDraft } from '../parts/draft.ts';
import { TextArea } from '../parts/form.tsx';
import { SubmitForm } from '../parts/submit.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { outcomeText } from './outcome-text.ts';
import type { Files } from './try-policies.tsx';

type Tested = ResponseFrom<'POST /api/v1/policies/test'>;

const EXAMPLE = `- name: adding a label needs no approval
  request: { tool: github.labels.add, fields: { labels: [triage] } }
  expect: allow
- name: closing an incident in prod needs people
  request: { tool: servicenow.incident.update, fields: { state: "7" }, environment: prod }
  expect: needs_approval
`;

/** Decides about requests that somebody writes, with the policies of the editor. */
export function TestPolicies({ files }: { files: Files }) {
  const [cases, setCases] = useDraft('policy-cases', EXAMPLE);
  const [tested, setTested] = useState<Tested>();
  const test = async () => {
    setTested(undefined);
    const body = { policies: { engine: 'cedar' as const, files: { ...files } }, cases };
    setTested(await call('POST /api/v1/policies/test', { body }));
    return undefined;
  };
  return (
    <>
      <SubmitForm
        label="Test"
        button="Run the cases"
        right="policies:read"
        command="countersign policy test cases.yaml --policies FOLDER"
        run={test}
      >
        <TextArea
          label="Cases (YAML)"
          mono
          rows={8}
          hint="The policies above decide on each request. Nothing is written or changed."
          value={cases}
          onChange={setCases}
        />
      </SubmitForm>
      {tested && <Results tested={tested} />}
    </>
  );
}

function Results({ tested: { cases } }: { tested: Tested }) {
  const failed = cases.filter(({ wrong }) => wrong.length > 0).length;
  return (
    <table className="grid">
      <caption>
        {cases.length === 1 ? '1 case' : `${cases.length} cases`}: {failed === 0 ? 'all passed' : `${failed} failed`}.
      </caption>
      <thead>
        <tr>
          <th scope="col">Case</th>
          <th scope="col">Result</th>
          <th scope="col">Decision</th>
        </tr>
      </thead>
      <tbody>
        {cases.map(({ name, decision, wrong }) => (
          <tr key={name}>
            <th scope="row">
              <UntrustedText text={name} />
            </th>
            <td>
              {wrong.length === 0 ? (
                <StatusIndicator type="success">Passed</StatusIndicator>
              ) : (
                <StatusIndicator type="error">
                  <UntrustedText text={wrong.join(', ')} />
                </StatusIndicator>
              )}
            </td>
            <td>
              <UntrustedText text={outcomeText(decision)} />
              <span className="secondary">
                {' '}
                <UntrustedText text={decision.reasons.join('; ')} max={600} />
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
