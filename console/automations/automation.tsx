import StatusIndicator from '@cloudscape-design/components/status-indicator';
import type { ResponseFrom } from '../../client/api-client.ts';
import { call } from '../data/api.ts';
import { Action } from '../parts/action.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';

export type Automation = ResponseFrom<'GET /api/v1/automations'>['automations'][number];

type Trigger = Automation['triggers'][number];

const eventText = (trigger: Trigger): string =>
  trigger.source === 'manual' ? 'people, the API and schedules' : `${trigger.source} ${trigger.event}`;

export const eventOf = ({ triggers }: Automation): string => triggers.map(eventText).join(', ');

export function EnabledState({ isEnabled }: { isEnabled: boolean }) {
  return isEnabled ? (
    <StatusIndicator type="success">Enabled</StatusIndicator>
  ) : (
    <StatusIndicator type="stopped">Disabled</StatusIndicator>
  );
}

/** Enables or disables an automation, whichever is possible. */
export function EnableOrDisable({ automation, isRow = false }: { automation: Automation; isRow?: boolean }) {
  const { name, enabled } = automation;
  const verb = enabled ? 'Disable' : 'Enable';
  return (
    <Action
      label={isRow ? verb : `${verb} the automation`}
      confirm={`${verb} the automation`}
      about={name}
      effect={
        <p>
          {enabled ? (
            <>
              Events no longer start runs of <UntrustedText text={name} />. Runs that have started continue.
            </>
          ) : (
            <>
              Runs of <UntrustedText text={name} /> start again for: <UntrustedText text={eventOf(automation)} />.
              Events that arrived meanwhile are not repeated.
            </>
          )}
        </p>
      }
      right="automations:control"
      command={() => `countersign automations ${verb.toLowerCase()} ${name}`}
      run={async () => {
        const command = enabled ? 'disable' : 'enable';
        const saved = await call(`POST /api/v1/automations/{name}/${command}`, { params: { name } });
        const state = enabled ? 'disabled' : 'enabled';
        return `${name} is ${state}. It takes effect within ${saved.effectiveWithinSeconds} s.`;
      }}
    />
  );
}
