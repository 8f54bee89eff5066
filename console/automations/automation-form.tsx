import type { RequestFor } from '../../client/api-client.ts';
import { call, useApi } from '../data/api.ts';
import { useDraft } from '../parts/draft.ts';
import { CheckField, SelectField, TextArea, TextField } from '../parts/form.tsx';
import { objectIn } from '../parts/json-value.ts';
import { SubmitForm } from '../parts/submit.tsx';
import type { Automation } from './automation.tsx';

type Source = Automation['triggers'][number]['source'];
type Body = RequestFor<'PUT /api/v1/automations/{name}'>['body'];

const SOURCES: Record<Source, string> = {
  github: 'A webhook of GitHub',
  servicenow: 'A webhook of ServiceNow',
  generic: 'A webhook of your own source',
  manual: 'People, the API and schedules only',
};
const EVENTS: Record<Source, string> = {
  github: 'issues.opened',
  servicenow: 'incident.insert',
  generic: 'alerts.fired',
  manual: '',
};

/** What people type, as text. */
interface Typed {
  name: string;
  description: string;
  enabled: boolean;
  workspace: string;
  source: Source;
  event: string;
  filter: string;
  workflow: string;
  version: string;
  inputs: string;
}

function typedOf(automation: Automation | undefined): Typed {
  const trigger = automation?.triggers[0] ?? { source: 'github' as const, event: '' };
  return {
    name: automation?.name ?? '',
    description: automation?.description ?? '',
    enabled: automation?.enabled ?? true,
    workspace: automation?.workspace ?? 'default',
    source: trigger.source,
    event: 'event' in trigger ? trigger.event : '',
    filter: ('filter' in trigger && trigger.filter) || '',
    workflow: automation?.workflow.name ?? '',
    version: String(automation?.workflow.version ?? ''),
    inputs: automation?.inputs ? JSON.stringify(automation.inputs, null, 2) : '',
  };
}

/** What the form does not show stays as it is. */
function bodyOf(typed: Typed, automation: Automation | undefined): Body {
  const { source, event, filter, description, enabled, workspace, workflow, version } = typed;
  const inputs = objectIn('Inputs', typed.inputs);
  return {
    ...{ enabled, workspace, workflow: { name: workflow, version: Number(version) } },
    triggers: [
      source === 'manual' ? { source } : { source, event, ...(filter.trim() !== '' && { filter }) },
      ...(automation?.triggers.slice(1) ?? []),
    ],
    ...unshown(automation),
    ...(description.trim() !== '' && { description: description.trim() }),
    ...(inputs && { inputs }),
  };
}

function unshown(automation: Automation | undefined): Partial<Body> {
  if (!automation) return {};
  const { notifications, connections, caps, configuration, model } = automation;
  return {
    notifications,
    ...(connections && { connections }),
    ...(caps && { caps }),
    ...(configuration && { configuration }),
    ...(model !== undefined && { model }),
  };
}

/** Adds an automation, or changes one. */
export function AutomationForm({ automation, onSaved }: { automation?: Automation; onSaved(name: string): void }) {
  const [typed, setTyped, clear] = useDraft(`automation.${automation?.name ?? ''}`, typedOf(automation));
  const { data } = useApi('GET /api/v1/workflows', { query: { limit: 100 } });
  const workflows = data?.workflows ?? [];
  const newest = workflows.find(({ name }) => name === typed.workflow)?.version;
  const change = (part: Partial<Typed>) => setTyped({ ...typed, ...part });
  const save = async () => {
    const { name } = typed;
    const saved = await call('PUT /api/v1/automations/{name}', { params: { name }, body: bodyOf(typed, automation) });
    clear();
    onSaved(name);
    return `${name} is saved. It takes effect within ${saved.effectiveWithinSeconds} s.`;
  };
  return (
    <SubmitForm
      label={automation ? 'Change the automation' : 'Add an automation'}
      button={automation ? 'Save the automation' : 'Add the automation'}
      right="automations:write"
      command={`countersign automations put ${typed.name || 'NAME'}.yaml`}
      run={save}
    >
      <div className="form-columns">
        <TextField
          label="Name"
          hint="Lower-case letters, digits and dashes. Policies can permit by it."
          value={typed.name}
          readOnly={automation !== undefined}
          onChange={(name) => change({ name })}
          maxLength={63}
        />
        <TextField
          label="What it is for"
          optional
          value={typed.description}
          onChange={(description) => change({ description })}
          maxLength={500}
        />
        <SelectField
          label="Started by"
          value={typed.source}
          options={Object.entries(SOURCES).map(([value, text]) => ({ value: value as Source, text }))}
          onChange={(source) => change({ source })}
        />
        {typed.source !== 'manual' && (
          <TextField
            label="Event"
            placeholder={EVENTS[typed.source]}
            hint="Without the part after the dot, any action."
            value={typed.event}
            onChange={(event) => change({ event })}
          />
        )}
        <TextField
          label="Workflow"
          value={typed.workflow}
          suggestions={workflows.map(({ name }) => name)}
          onChange={(workflow) => change({ workflow })}
        />
        <TextField
          label="Version"
          type="number"
          hint={newest === undefined ? 'A published version.' : `The newest version is ${newest}.`}
          value={typed.version}
          onChange={(version) => change({ version })}
        />
      </div>
      {typed.source !== 'manual' && (
        <TextField
          label="Filter"
          optional
          hint="An expression over the event. Only true starts a run."
          placeholder={`{% trigger.payload.label.name = 'duplicate' %}`}
          value={typed.filter}
          onChange={(filter) => change({ filter })}
        />
      )}
      <TextArea
        label="Inputs of the workflow, as JSON"
        optional
        mono
        hint="May contain {% expressions %} over trigger."
        value={typed.inputs}
        onChange={(inputs) => change({ inputs })}
      />
      <TextField
        label="Workspace"
        hint="Whose share of the capacity its runs use."
        value={typed.workspace}
        onChange={(workspace) => change({ workspace })}
      />
      <CheckField
        label="Enabled"
        hint="If not, events start no runs."
        checked={typed.enabled}
        onChange={(enabled) => change({ enabled })}
      />
    </SubmitForm>
  );
}
