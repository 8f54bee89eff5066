import type { RequestFor } from '../../client/api-client.ts';
import { call, useApi } from '../data/api.ts';
import { useDraft } from '../parts/draft.ts';
import { CheckField, SelectField, TextArea, TextField } from '../parts/form.tsx';
import { objectIn } from '../parts/json-value.ts';
import { SubmitForm } from '../parts/submit.tsx';
import type { Schedule } from './schedule.tsx';

type Body = RequestFor<'PUT /api/v1/schedules/{name}'>['body'];

const CATCH_UP: Record<Schedule['catchUp'], string> = {
  skip: 'No run for them',
  one: 'One run for all of them',
  all: 'One run for each of them',
};

/** What people type, as text. */
interface Typed {
  name: string;
  description: string;
  automation: string;
  kind: 'cron' | 'rate';
  cron: string;
  rate: string;
  timeZone: string;
  title: string;
  inputs: string;
  catchUp: Schedule['catchUp'];
  catchUpMax: string;
  enabled: boolean;
}

const typedOf = (schedule: Schedule | undefined): Typed => ({
  name: schedule?.name ?? '',
  description: schedule?.description ?? '',
  automation: schedule?.automation ?? '',
  kind: schedule?.rate === undefined ? 'cron' : 'rate',
  cron: schedule?.cron ?? '',
  rate: schedule?.rate ?? '',
  timeZone: schedule?.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
  title: schedule?.title ?? '',
  inputs: schedule?.inputs ? JSON.stringify(schedule.inputs, null, 2) : '',
  catchUp: schedule?.catchUp ?? 'skip',
  catchUpMax: String(schedule?.catchUpMax ?? 10),
  enabled: schedule?.enabled ?? true,
});

function bodyOf(typed: Typed): Body {
  const { kind, cron, rate, timeZone, title, description, automation, catchUp, enabled } = typed;
  const inputs = objectIn('Inputs', typed.inputs);
  return {
    ...{ automation, catchUp, enabled, catchUpMax: Number(typed.catchUpMax) },
    ...(kind === 'cron' ? { cron, timeZone } : { rate }),
    ...(description.trim() !== '' && { description: description.trim() }),
    ...(title.trim() !== '' && { title: title.trim() }),
    ...(inputs && { inputs }),
  };
}

/** Adds a schedule, or changes one. */
export function ScheduleForm({ schedule, onSaved }: { schedule?: Schedule; onSaved(name: string): void }) {
  const [typed, setTyped, clear] = useDraft(`schedule.${schedule?.name ?? ''}`, typedOf(schedule));
  const { data } = useApi('GET /api/v1/automations', { query: { limit: 100 } });
  const change = (part: Partial<Typed>) => setTyped({ ...typed, ...part });
  const save = async () => {
    const { name } = typed;
    await call('PUT /api/v1/schedules/{name}', { params: { name }, body: bodyOf(typed) });
    clear();
    onSaved(name);
    return `${name} is saved.`;
  };
  return (
    <SubmitForm
      label={schedule ? 'Change the schedule' : 'Add a schedule'}
      button={schedule ? 'Save the schedule' : 'Add the schedule'}
      right="automations:write"
      command={`countersign schedules save ${typed.name || 'NAME'}.yaml`}
      run={save}
    >
      <div className="form-columns">
        <TextField
          label="Name"
          hint="Lower-case letters, digits and dashes."
          value={typed.name}
          readOnly={schedule !== undefined}
          onChange={(name) => change({ name })}
          maxLength={63}
        />
        <TextField
          label="Automation"
          value={typed.automation}
          suggestions={(data?.automations ?? []).map(({ name }) => name)}
          onChange={(automation) => change({ automation })}
        />
        <SelectField
          label="Times"
          value={typed.kind}
          options={[
            { value: 'cron', text: 'Times of a day (cron)' },
            { value: 'rate', text: 'A fixed interval' },
          ]}
          onChange={(kind) => change({ kind })}
        />
        {typed.kind === 'rate' ? (
          <TextField
            label="Every"
            placeholder="15 minutes"
            hint="15 minutes, 1 hour, 2 days"
            value={typed.rate}
            onChange={(rate) => change({ rate })}
          />
        ) : (
          <>
            <TextField
              label="Cron"
              placeholder="0 9 * * 1-5"
              hint="Minute, hour, day of the month, month, day of the week."
              value={typed.cron}
              onChange={(cron) => change({ cron })}
            />
            <TextField
              label="Time zone"
              placeholder="Europe/Berlin"
              value={typed.timeZone}
              onChange={(timeZone) => change({ timeZone })}
            />
          </>
        )}
        <SelectField
          label="Times that were missed in an outage"
          value={typed.catchUp}
          options={Object.entries(CATCH_UP).map(([value, text]) => ({ value: value as Schedule['catchUp'], text }))}
          onChange={(catchUp) => change({ catchUp })}
        />
        {typed.catchUp === 'all' && (
          <TextField
            label="At most this many runs"
            type="number"
            hint="From 1 to 100, for the newest missed times."
            value={typed.catchUpMax}
            onChange={(catchUpMax) => change({ catchUpMax })}
          />
        )}
      </div>
      <TextField label="Title of its runs" optional value={typed.title} onChange={(title) => change({ title })} />
      <TextArea
        label="Inputs of the workflow, as JSON"
        optional
        mono
        value={typed.inputs}
        onChange={(inputs) => change({ inputs })}
      />
      <CheckField label="Enabled" checked={typed.enabled} onChange={(enabled) => change({ enabled })} />
    </SubmitForm>
  );
}
