import type { RequestFor, ResponseFrom } from '../../client/api-client.ts';
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
  maxConcurrency: { label: 'Runs at the same time', hint: 'Further runs wait in the queue.' },
  maxRunsPerMinute: { label: 'Runs that start in a minute', hint: 'Further runs wait for the next minute.' },
  maxWritesPerRun: { label: 'Writes of one run', hint: 'A run that needs more fails before the next write.' },
} as const;
type Cap = keyof typeof CAPS;
const AGENTS_FLAG = 'worker_orchestration.enabled';

export default function SettingsPage() {
  const { data, error, refetch } = useApi('GET /api/v1/settings', {});
  const cannotCheck = useWhyNot('setup:check');
  return (
    <SettingsArea title="Settings" description="Limits, channels and parts of the product of this tenant.">
      {error && <Problem error={error} retry={refetch} />}
      {data && <SettingsForm key={JSON.stringify(data)} settings={data} />}
      {data && <OtherSettings settings={data} />}
      <Section title="Check of the setup">
        {cannotCheck === undefined ? <Findings /> : <p className="secondary">{cannotCheck}</p>}
      </Section>
    </SettingsArea>
  );
}

/** What people type, as text; an empty field is no limit. */
interface Typed {
  caps: Record<Cap, string>;
  approvalsChannel: string;
  overdueDigestMinutes: string;
  agents: boolean;
}

const typedOf = ({ caps, approvalsChannel = '', overdueDigestMinutes, features }: Settings): Typed => ({
  caps: Object.fromEntries(Object.keys(CAPS).map((cap) => [cap, String(caps[cap as Cap] ?? '')])) as Typed['caps'],
  approvalsChannel,
  overdueDigestMinutes: String(overdueDigestMinutes ?? ''),
  agents: features?.[AGENTS_FLAG] !== false,
});

/** Settings that the form does not show stay as they are. */
function savedOf({ counterShards: _readOnly, ...before }: Settings, typed: Typed): SavedSettings {
  const { approvalsChannel: _a, overdueDigestMinutes: _o, features: _f, ...others } = before;
  const caps = Object.entries(typed.caps).filter(([, text]) => text !== '');
  return {
    ...others,
    caps: Object.fromEntries(caps.map(([cap, text]) => [cap, Number(text)])),
    ...(typed.approvalsChannel !== '' && { approvalsChannel: typed.approvalsChannel }),
    ...(typed.overdueDigestMinutes !== '' && { overdueDigestMinutes: Number(typed.overdueDigestMinutes) }),
    ...((before.features || !typed.agents) && { features: { [AGENTS_FLAG]: typed.agents } }),
  };
}

function SettingsForm({ settings }: { settings: Settings }) {
  const before = typedOf(settings);
  const [typed, setTyped, clear] = useDraft('settings', before);
  const changes = [
    ...Object.entries(typed.caps)
      .filter(([cap, text]) => text !== before.caps[cap as Cap])
      .map(([cap, text]) => `caps.${cap}=${text}`),
    ...(typed.approvalsChannel === before.approvalsChannel ? [] : [`approvalsChannel=${typed.approvalsChannel}`]),
    ...(typed.overdueDigestMinutes === before.overdueDigestMinutes
      ? []
      : [`overdueDigestMinutes=${typed.overdueDigestMinutes}`]),
    ...(typed.agents === before.agents ? [] : [`features.${AGENTS_FLAG}=${typed.agents}`]),
  ];
  return (
    <SubmitForm
      label="Settings"
      button="Save the settings"
      right="settings:write"
      disabledReason={changes.length === 0 ? 'Nothing was changed.' : undefined}
      command={`countersign settings set ${changes.map(word).join(' ') || 'caps.maxConcurrency=50'}`}
      run={async () => {
        const saved = await call('PUT /api/v1/settings', { body: savedOf(settings, typed) });
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
            hint={`${hint} Empty: no limit.`}
            type="number"
            optional
            value={typed.caps[cap as Cap]}
            onChange={(text) => setTyped({ ...typed, caps: { ...typed.caps, [cap]: text } })}
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
          onChange={(approvalsChannel) => setTyped({ ...typed, approvalsChannel })}
        />
        <TextField
          label="Minutes between lists of overdue approvals"
          hint="From 10 to 1,440. Empty: 60."
          type="number"
          optional
          value={typed.overdueDigestMinutes}
          onChange={(overdueDigestMinutes) => setTyped({ ...typed, overdueDigestMinutes })}
        />
      </div>
      <h2>Parts of the product</h2>
      <CheckField
        label="Commands on agents"
        hint="If you switch this off, no command is assigned to an agent, and running ones are canceled."
        checked={typed.agents}
        onChange={(agents) => setTyped({ ...typed, agents })}
      />
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
