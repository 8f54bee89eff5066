import { useRef } from 'react';
import { useLocation } from 'wouter';
import type { RequestFor } from '../../client/api-client.ts';
import { call } from '../data/api.ts';
import { word } from '../parts/action.tsx';
import { useDraft } from '../parts/draft.ts';
import { TextField } from '../parts/form.tsx';
import { SubmitForm } from '../parts/submit.tsx';
import { type InputDefinitions, InputsForm, inputOptions, inputsIn, type TypedInputs } from './inputs-form.tsx';

interface RunNowProps {
  /** An automation, or a workflow without one. */
  of: { automation: string; isEnabled: boolean } | { workflow: string };
  inputs: InputDefinitions;
  given?: Readonly<Record<string, unknown>>;
}

interface Typed {
  inputs: TypedInputs;
  title: string;
  subject: string;
}

/** Starts a run with inputs that people type. The same click twice starts one run. */
export function RunNow({ of, inputs, given }: RunNowProps) {
  const name = 'automation' in of ? of.automation : of.workflow;
  const [typed, setTyped, clear] = useDraft<Typed>(`run.${name}`, { inputs: {}, title: '', subject: '' });
  const [, go] = useLocation();
  const idempotencyKey = useRef(crypto.randomUUID());
  const start = async () => {
    const request = {
      headers: { 'idempotency-key': idempotencyKey.current },
      body: {
        inputs: inputsIn(inputs, typed.inputs),
        ...(typed.title.trim() !== '' && { title: typed.title.trim() }),
        ...(typed.subject.trim() !== '' && { subject: typed.subject.trim() }),
      },
    };
    const { runId } = await send(of, request);
    clear();
    idempotencyKey.current = crypto.randomUUID();
    go(`/runs/${encodeURIComponent(runId)}`);
    return 'The run is started.';
  };
  const what = 'automation' in of ? `automations run ${word(name)}` : `runs start ${word(name)}`;
  const title = typed.title.trim() === '' ? '' : ` --title ${word(typed.title.trim())}`;
  return (
    <SubmitForm
      label="Run now"
      button="Start a run"
      right="runs:start"
      disabledReason={'automation' in of && !of.isEnabled ? 'The automation is disabled. Enable it first.' : undefined}
      command={`countersign ${what}${inputOptions(typed.inputs)}${title}`}
      run={start}
    >
      <p className="secondary">
        Policy decides on every write of the run. You supply its inputs, so you cannot approve its writes.
      </p>
      <InputsForm
        inputs={inputs}
        typed={typed.inputs}
        onChange={(each) => setTyped({ ...typed, inputs: each })}
        {...(given && { given })}
      />
      <div className="form-columns">
        <TextField
          label="Title"
          optional
          hint="Shown in lists and on the page of the run."
          value={typed.title}
          onChange={(each) => setTyped({ ...typed, title: each })}
          maxLength={300}
        />
        <TextField
          label="Subject"
          optional
          hint="What the run is about."
          placeholder="servicenow:acme:INC0012345"
          value={typed.subject}
          onChange={(each) => setTyped({ ...typed, subject: each })}
          maxLength={300}
        />
      </div>
    </SubmitForm>
  );
}

type Start = Pick<RequestFor<'POST /api/v1/automations/{name}/run'>, 'body' | 'headers'>;

const send = (of: RunNowProps['of'], { body, headers }: Start) =>
  'automation' in of
    ? call('POST /api/v1/automations/{name}/run', { params: { name: of.automation }, body, headers })
    : call('POST /api/v1/runs', { body: { workflow: { name: of.workflow }, ...body }, headers });
