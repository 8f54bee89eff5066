import { useState } from 'react';
import type { RequestFor } from '../../client/api-client.ts';
import { call } from '../data/api.ts';
import { useDraft } from '../parts/draft.ts';
import { SelectField, TextArea, TextField } from '../parts/form.tsx';
import { jsonIn, objectIn } from '../parts/json-value.ts';
import { SubmitForm } from '../parts/submit.tsx';
import { type Plan, PlanView } from './plan-view.tsx';

type Body = RequestFor<'POST /api/v1/workflows/simulate'>['body'];
type Source = NonNullable<Body['source']>;

const SOURCES: Record<Source, string> = {
  manual: 'You, now',
  github: 'A webhook of GitHub',
  servicenow: 'A webhook of ServiceNow',
  generic: 'A webhook of your own source',
};

interface Typed {
  source: Source;
  inputs: string;
  payload: string;
  name: string;
}

interface SimulateProps {
  /** The text of a file, or a published version. */
  workflow: Body['workflow'];
  file: string;
  disabledReason?: string | undefined;
}

/** What a run would read and write, and who would have to approve. Nothing is written. */
export function Simulate({ workflow, file, disabledReason }: SimulateProps) {
  const [typed, setTyped] = useDraft<Typed>(`simulate.${file}`, {
    source: 'manual',
    inputs: '',
    payload: '',
    name: '',
  });
  const change = (part: Partial<Typed>) => setTyped({ ...typed, ...part });
  const { source, inputs, payload, name } = typed;
  const [plan, setPlan] = useState<Plan>();
  const simulate = async () => {
    const given = objectIn('Inputs', inputs);
    const body: Body = {
      ...{ workflow, source },
      ...(given && { inputs: given }),
      ...(source !== 'manual' && { payload: jsonIn('Payload', payload) as never }),
      ...(source === 'generic' && { sourceName: name }),
      ...(source === 'github' && name !== '' && { event: name }),
    };
    setPlan(await call('POST /api/v1/workflows/simulate', { body }));
    return undefined;
  };
  const event = source === 'manual' ? '' : ` --event payload.json --source ${source}`;
  return (
    <>
      <SubmitForm
        label="Simulate"
        button="Show the plan"
        right="workflows:simulate"
        disabledReason={disabledReason}
        command={`countersign workflow simulate ${file}${event}`}
        run={simulate}
      >
        <p className="secondary">
          Plans with the policies of this tenant, and reads the targets with read-only credentials. Nothing is written.
        </p>
        <div className="form-columns">
          <SelectField
            label="Started by"
            value={source}
            options={Object.entries(SOURCES).map(([value, text]) => ({ value: value as Source, text }))}
            onChange={(chosen) => change({ source: chosen })}
          />
          {source === 'generic' && (
            <TextField label="Name of the source" value={name} onChange={(text) => change({ name: text })} />
          )}
          {source === 'github' && (
            <TextField
              label="Event"
              optional
              placeholder="issues"
              value={name}
              onChange={(text) => change({ name: text })}
            />
          )}
        </div>
        {source === 'manual' ? (
          <TextArea
            label="Inputs, as JSON"
            optional
            mono
            rows={3}
            hint={'For example {"service": "payments"}.'}
            value={inputs}
            onChange={(text) => change({ inputs: text })}
          />
        ) : (
          <TextArea
            label="Payload, as JSON"
            mono
            rows={8}
            value={payload}
            onChange={(text) => change({ payload: text })}
          />
        )}
      </SubmitForm>
      {plan && <PlanView plan={plan} />}
    </>
  );
}
