import type { RequestFor } from '../../client/api-client.ts';
import { call, useApi } from '../data/api.ts';
import { useDraft } from '../parts/draft.ts';
import { CheckField, SelectField, TextArea, TextField } from '../parts/form.tsx';
import { objectIn } from '../parts/json-value.ts';
import { SubmitForm } from '../parts/submit.tsx';
import type { Automation } from './automation.tsx';

type Source = Automation['triggers'][number]['source'];
type Body = NonNullable<RequestFor<'PUT /api/v1/automations/{name}'>['body']>;
type Starts = 'workflow' | 'session';
type Strategy = NonNullable<Automation['configuration']>['strategy'] | 'none';

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
  starts: Starts;
  instructions: string;
  session: string;
  strategy: Strategy;
  allow: string;
  fallback: string;
  preset: string;
}

function typedOf(automation: Automation | undefined): Typed {
  const { instructions, session, configuration } = automation ?? {};
  const decides = configuration?.strategy === 'agent_decide' ? configuration : undefined;
  const trigger = automation?.triggers[0] ?? { source: 'github' as const, event: '' };
  return {
    name: automation?.name ?? '',
    description: automation?.description ?? '',
    enabled: automation?.enabled ?? true,
    workspace: automation?.workspace ?? 'default',
    source: trigger.source,
    event: 'event' in trigger ? trigger.event : '',
    filter: ('filter' in trigger && trigger.filter) || '',
    workflow: (instructions === undefined && automation?.workflow.name) || '',
    version: String((instructions === undefined && automation?.workflow.version) || ''),
    inputs: automation?.inputs ? JSON.stringify(automation.inputs, null, 2) : '',
    starts: instructions === undefined ? 'workflow' : 'session',
    instructions: instructions ?? '',
    session: session ? JSON.stringify(session, null, 2) : '',
    strategy: configuration?.strategy ?? 'none',
    allow: decides?.allow.join(', ') ?? '',
    fallback: decides?.fallback ?? '',
    preset: configuration?.default ?? '',
  };
}

/** What the form does not show stays as it is. */
function bodyOf(typed: Typed, automation: Automation | undefined): Body {
  const { source, event, filter, description, enabled, workspace } = typed;
  return {
    ...{ enabled, workspace },
    ...(typed.starts === 'workflow' ? workflowOf(typed) : sessionOf(typed)),
    triggers: [
      source === 'manual' ? { source } : { source, event, ...(filter.trim() !== '' && { filter }) },
      ...(automation?.triggers.slice(1) ?? []),
    ],
    ...unshown(automation),
    ...(description.trim() !== '' && { description: description.trim() }),
    ...strategyOf(typed),
  };
}

function workflowOf({ workflow, version, inputs: text }: Typed): Body {
  const inputs = objectIn('Inputs', text);
  return { workflow: { name: workflow, version: Number(version) }, ...(inputs && { inputs }) };
}

function sessionOf({ instructions, session: text }: Typed): Body {
  const session = objectIn('Session', text);
  return { instructions, ...(session && { session }) };
}

function strategyOf({ strategy, preset, allow, fallback }: Typed): Body {
  if (strategy === 'none') return {};
  if (strategy === 'fixed') return { configuration: { strategy, default: preset } };
  const allowed = allow.split(',').flatMap((name) => name.trim() || []);
  const otherwise = { ...(fallback !== '' && { fallback }), ...(preset !== '' && { default: preset }) };
  return { configuration: { strategy, allow: allowed, ...otherwise } };
}

function unshown(automation: Automation | undefined): Partial<Body> {
  if (!automation) return {};
  const { notifications, connections, caps, model } = automation;
  return {
    notifications,
    ...(connections && { connections }),
    ...(caps && { caps }),
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
          hint="Lower-case letters, digits and dashes. Policies can refer to it."
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
        <SelectField
          label="Starts"
          value={typed.starts}
          options={[
            { value: 'workflow', text: 'A version of a workflow' },
            { value: 'session', text: 'A session with instructions' },
          ]}
          onChange={(starts) => change({ starts })}
        />
        {typed.starts === 'workflow' && (
          <>
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
          </>
        )}
      </div>
      {typed.starts === 'session' && (
        <>
          <TextArea
            label="Instructions"
            hint="What the session does. May contain {% expressions %}. Each change is a new version."
            value={typed.instructions}
            onChange={(instructions) => change({ instructions })}
          />
          <TextArea
            label="Context and actions of the session, as JSON"
            optional
            mono
            hint={
              'Without it the session gets what is known of the event, and may propose nothing. Example: {"actions": [{"tool": "github.labels.add"}]}'
            }
            value={typed.session}
            onChange={(session) => change({ session })}
          />
        </>
      )}
      <StrategyFields typed={typed} change={change} />
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
      {typed.starts === 'workflow' && (
        <TextArea
          label="Inputs of the workflow, as JSON"
          optional
          mono
          hint="May contain {% expressions %} over trigger."
          value={typed.inputs}
          onChange={(inputs) => change({ inputs })}
        />
      )}
      <TextField
        label="Workspace"
        hint="Free slots go to the least used workspace first."
        value={typed.workspace}
        onChange={(workspace) => change({ workspace })}
      />
      <CheckField
        label="Enabled"
        hint="If disabled, events start no runs."
        checked={typed.enabled}
        onChange={(enabled) => change({ enabled })}
      />
    </SubmitForm>
  );
}

const STRATEGIES: Record<Strategy, string> = {
  none: 'Named in its steps',
  fixed: 'Always one configuration',
  agent_decide: 'A model picks a configuration',
};

/** Where sessions of its runs take place. */
function StrategyFields({ typed, change }: { typed: Typed; change(part: Partial<Typed>): void }) {
  const { data } = useApi('GET /api/v1/configurations', { query: { limit: '100' } });
  const names = (data?.configurations ?? []).map(({ name }) => name);
  return (
    <div className="form-columns">
      <SelectField
        label="Where its sessions run"
        value={typed.strategy}
        options={Object.entries(STRATEGIES).map(([value, text]) => ({ value: value as Strategy, text }))}
        onChange={(strategy) => change({ strategy })}
      />
      {typed.strategy === 'agent_decide' && (
        <>
          <TextField
            label="Configurations to pick from"
            hint={`Separated by commas. Available: ${names.join(', ') || 'none'}.`}
            value={typed.allow}
            onChange={(allow) => change({ allow })}
          />
          <TextField
            label="Fallback"
            optional
            hint="Used if the model picks none of them."
            value={typed.fallback}
            suggestions={names}
            onChange={(fallback) => change({ fallback })}
          />
        </>
      )}
      {typed.strategy !== 'none' && (
        <TextField
          label={typed.strategy === 'fixed' ? 'Configuration' : 'Default'}
          optional={typed.strategy === 'agent_decide'}
          hint={typed.strategy === 'fixed' ? undefined : 'Used if there is no fallback.'}
          value={typed.preset}
          suggestions={names}
          onChange={(preset) => change({ preset })}
        />
      )}
    </div>
  );
}
