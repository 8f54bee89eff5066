import type { RequestFor, ResponseFrom } from '../../client/api-client.ts';
import { FLAGS, type FlagName } from '../../lambdas/run/settings/flags.ts';
import { call, useApi } from '../data/api.ts';
import { word } from '../parts/action.tsx';
import { useDraft } from '../parts/draft.ts';
import { CheckField, TextField } from '../parts/form.tsx';
import { Problem } from '../parts/problem.tsx';
import { Facts, Section } from '../parts/section.tsx';
import { SubmitForm } from '../parts/submit.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { useWhyNot } from '../parts/why-not.ts';
import { Findings } from './findings.tsx';
import { SettingsArea } from './settings-area.tsx';

type Settings = ResponseFrom<'GET /api/v1/settings'>;
type SavedSettings = NonNullable<RequestFor<'PUT /api/v1/settings'>['body']>;

const CAPS = {
  maxConcurrency: { label: 'Runs at the same time', hint: 'Further runs wait in the queue. Empty: no limit.' },
  maxRunsPerMinute: {
    label: 'Runs that start in a minute',
    hint: 'Further runs wait for the next minute. Empty: no limit.',
  },
  maxWritesPerRun: {
    label: 'Writes of one run',
    hint: 'A run that needs more fails before the next write. Empty: no limit.',
  },
  maxActionsPerMinute: { label: 'Actions of one caller in a minute', hint: 'Over MCP and the API. Empty: 60.' },
} as const;
type Cap = keyof typeof CAPS;

export default function SettingsPage() {
  const { data, error, refetch } = useApi('GET /api/v1/settings', {});
  const cannotCheck = useWhyNot('setup:check');
  return (
    <SettingsArea title="Settings" description="Limits, channels and features of this tenant.">
      {error && <Problem error={error} retry={refetch} />}
      {data && <SettingsForm key={JSON.stringify(data)} settings={data} />}
      {data && <OtherSettings settings={data} />}
      <Section title="Check of the setup">
        {cannotCheck === undefined ? <Findings /> : <p className="secondary">{cannotCheck}</p>}
      </Section>
    </SettingsArea>
  );
}

type Field = `caps.${Cap}` | 'approvalsChannel' | 'overdueDigestMinutes' | `features.${FlagName}`;
/** Fields as text, under the names of `countersign settings set`. An empty cap is no limit; flags are as they apply. */
type Typed = Record<Field, string>;

const typedOf = ({ caps, approvalsChannel = '', overdueDigestMinutes, flags }: Settings): Typed =>
  ({
    ...Object.fromEntries(Object.keys(CAPS).map((cap) => [`caps.${cap}`, String(caps[cap as Cap] ?? '')])),
    approvalsChannel,
    overdueDigestMinutes: String(overdueDigestMinutes ?? ''),
    ...Object.fromEntries(flags.map(({ name, on }) => [`features.${name}`, String(on)])),
  }) as Typed;

/** Everything that the person did not change stays as it is in `now`. */
function savedOf(now: Settings, changed: Partial<Typed>): SavedSettings {
  const { counterShards: _readOnly, flags, approvalsChannel: _a, overdueDigestMinutes: _o, features, ...others } = now;
  const typed = { ...typedOf(now), ...changed };
  const switched = flags
    .filter(({ name, on }) => typed[`features.${name}`] !== String(on))
    .map(({ name, on }) => [name, !on]);
  const caps = Object.keys(CAPS).flatMap((cap) => {
    const text = typed[`caps.${cap as Cap}`];
    return text === '' ? [] : [[cap, Number(text)]];
  });
  return {
    ...others,
    caps: Object.fromEntries(caps),
    ...(typed.approvalsChannel !== '' && { approvalsChannel: typed.approvalsChannel }),
    ...(typed.overdueDigestMinutes !== '' && { overdueDigestMinutes: Number(typed.overdueDigestMinutes) }),
    ...((features || switched.length > 0) && { features: { ...features, ...Object.fromEntries(switched) } }),
  };
}

function SettingsForm({ settings }: { settings: Settings }) {
  const before = typedOf(settings);
  // Only what was changed: a draft of all fields would switch writes on again that somebody else has switched off since.
  const [changed, setChanged, clear] = useDraft<Partial<Typed>>('settings.changed', {});
  const typed = { ...before, ...changed };
  const change = (field: Field, text: string) => {
    const { [field]: _before, ...others } = changed;
    setChanged(text === before[field] ? others : { ...others, [field]: text });
  };
  const changes = (Object.keys(typed) as Field[])
    .filter((field) => typed[field] !== before[field])
    .map((field) => `${field}=${typed[field]}`);
  return (
    <SubmitForm
      label="Settings"
      button="Save the settings"
      right="settings:write"
      disabledReason={changes.length === 0 ? 'Nothing was changed.' : undefined}
      command={`countersign settings set ${changes.map(word).join(' ') || 'caps.maxConcurrency=50'}`}
      run={async () => {
        // What this page shows may be a minute old.
        const now = await call('GET /api/v1/settings', {});
        const saved = await call('PUT /api/v1/settings', { body: savedOf(now, changed) });
        clear();
        return `The settings are saved. They take effect within ${saved.effectiveWithinSeconds} s.`;
      }}
    >
      <h2>Limits</h2>
      <div className="form-columns">
        {Object.entries(CAPS).map(([cap, { label, hint }]) => (
          <TextField
            key={cap}
            label={label}
            hint={hint}
            type="number"
            optional
            value={typed[`caps.${cap as Cap}`]}
            onChange={(text) => change(`caps.${cap as Cap}`, text)}
          />
        ))}
      </div>
      <h2>Slack</h2>
      <div className="form-columns">
        <TextField
          label="Channel for approvals"
          hint="For workflows that name none."
          optional
          placeholder="#approvals"
          value={typed.approvalsChannel}
          onChange={(text) => change('approvalsChannel', text)}
        />
        <TextField
          label="Minutes between lists of overdue approvals"
          hint="From 10 to 1,440. Empty: 60."
          type="number"
          optional
          value={typed.overdueDigestMinutes}
          onChange={(text) => change('overdueDigestMinutes', text)}
        />
      </div>
      <h2>Parts of the product</h2>
      {settings.flags.map(({ name, source, whenOff }) => (
        <CheckField
          key={name}
          label={FLAGS[name].label}
          hint={`Off: ${whenOff}.${source === 'tenant' ? '' : source === 'stage' ? ' The stage sets it.' : ' This is the default.'}`}
          checked={typed[`features.${name}`] === 'true'}
          onChange={(on) => change(`features.${name}`, String(on))}
        />
      ))}
    </SubmitForm>
  );
}

function OtherSettings({ settings: { workspaces, issuers = [], counterShards } }: { settings: Settings }) {
  const shares = Object.entries(workspaces).map(([name, units]) => `${name}: ${units}`);
  return (
    <Section title="Set on the command line or by the operator of the stage">
      <Facts
        facts={[
          ['Shares of workspaces', <UntrustedText key="w" text={shares.join(', ') || 'all equal'} max={1_000} />],
          [
            'Sign-in issuers of this tenant',
            <UntrustedText
              key="i"
              text={issuers.map(({ name, issuer }) => `${name}: ${issuer}`).join(', ') || 'none'}
            />,
          ],
          ['Counters for slots', String(counterShards)],
        ]}
      />
    </Section>
  );
}
