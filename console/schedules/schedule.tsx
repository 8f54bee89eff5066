import type { ResponseFrom } from '../../client/api-client.ts';
import { call } from '../data/api.ts';
import { Action, word } from '../parts/action.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';

export type Schedule = ResponseFrom<'GET /api/v1/schedules'>['schedules'][number];

export const timesOf = ({ cron, rate, timeZone }: Schedule): string =>
  cron === undefined ? `every ${rate}` : `${cron} (${timeZone})`;

/** Enables or disables a schedule, whichever is possible. */
export function EnableOrDisable({ schedule, isRow = false }: { schedule: Schedule; isRow?: boolean }) {
  const { name, enabled } = schedule;
  const params = { name };
  const verb = enabled ? 'Disable' : 'Enable';
  return (
    <Action
      label={isRow ? verb : `${verb} the schedule`}
      confirm={`${verb} the schedule`}
      about={name}
      effect={
        <p>
          {enabled ? (
            <>
              <UntrustedText text={name} /> starts no more runs. Runs that it started continue.
            </>
          ) : (
            <>
              <UntrustedText text={name} /> starts runs from its next time on. You become a maker of their writes, so
              you cannot approve them.
            </>
          )}
        </p>
      }
      right="schedules:control"
      command={() => `countersign schedules ${enabled ? 'disable' : 'enable'} ${word(name)}`}
      run={async () => {
        if (enabled) await call('POST /api/v1/schedules/{name}/disable', { params });
        else await call('POST /api/v1/schedules/{name}/enable', { params });
        return `${name} is ${enabled ? 'disabled' : 'enabled'}.`;
      }}
    />
  );
}
