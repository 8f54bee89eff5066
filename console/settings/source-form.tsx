import type { ResponseFrom } from '../../client/api-client.ts';
import { call } from '../data/api.ts';
import { word } from '../parts/action.tsx';
import { useDraft } from '../parts/draft.ts';
import { CheckField, TextField } from '../parts/form.tsx';
import { SubmitForm } from '../parts/submit.tsx';

export type Source = ResponseFrom<'GET /api/v1/sources'>['sources'][number];

/** The optional texts: how an event is read. */
const READ = [
  ['subject', 'Subject', '{% trigger.payload.host %}', 'What the run is about.'],
  ['actor', 'Actor', '{% trigger.payload.user %}', 'Who caused it. They cannot approve.'],
  ['event', 'Event', '{% trigger.payload.status %}', 'Automations wait for NAME.EVENT.'],
  ['id', 'Id', '{% trigger.payload.id %}', 'The same id starts nothing again. Default: the header webhook-id.'],
] as const;
type Texts = Record<'name' | 'description' | 'title' | (typeof READ)[number][0], string>;

/** Adds a source of webhooks, or changes one. */
export function SourceForm({ source, onSaved }: { source?: Source | undefined; onSaved(): void }) {
  const [typed, setTyped, clear] = useDraft<Texts & { enabled: boolean }>(`source.${source?.name ?? ''}`, {
    ...{ name: '', description: '', title: '', subject: '', actor: '', event: '', id: '', enabled: true },
    ...source,
  });
  const { name, title, enabled } = typed;
  const change = (part: Partial<typeof typed>) => setTyped({ ...typed, ...part });
  const save = async () => {
    const optional = (['description', ...READ.map(([field]) => field)] as const).filter((field) => typed[field].trim());
    const texts = Object.fromEntries(optional.map((field) => [field, typed[field].trim()]));
    const body = { ...texts, title, enabled };
    const { effectiveWithinSeconds } = await call('PUT /api/v1/sources/{name}', { params: { name }, body });
    clear();
    onSaved();
    return `${name} is saved. It takes effect within ${effectiveWithinSeconds} s. Its webhooks need the signing secret generic/${name}.`;
  };
  return (
    <SubmitForm
      label={source ? 'Change the source' : 'Add a source'}
      button={source ? 'Save the source' : 'Add the source'}
      right="automations:write"
      disabledReason={name === '' || title === '' ? 'Give a name and the title of its runs.' : undefined}
      command={`countersign sources save ${word(`${name || 'NAME'}.yaml`)}`}
      run={save}
    >
      <div className="form-columns">
        <TextField
          label="Name of the source"
          placeholder="alerts"
          hint="Part of its address. Lower-case letters, digits and dashes."
          value={name}
          readOnly={source !== undefined}
          onChange={(text) => change({ name: text })}
          maxLength={40}
        />
        <TextField
          label="What it is"
          optional
          value={typed.description}
          onChange={(description) => change({ description })}
          maxLength={500}
        />
      </div>
      <TextField
        label="Title of its runs"
        placeholder="{% trigger.payload.alert.name %} on {% trigger.payload.host %}"
        hint="Text with expressions over the JSON that it sends."
        value={title}
        onChange={(text) => change({ title: text })}
      />
      <div className="form-columns">
        {READ.map(([field, label, placeholder, hint]) => (
          <TextField
            key={field}
            label={label}
            optional
            {...{ placeholder, hint }}
            value={typed[field]}
            onChange={(text) => change({ [field]: text })}
          />
        ))}
      </div>
      <CheckField
        label="Enabled"
        hint="If not, its webhooks are refused."
        checked={enabled}
        onChange={(checked) => change({ enabled: checked })}
      />
    </SubmitForm>
  );
}
