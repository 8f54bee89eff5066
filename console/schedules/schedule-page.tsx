import Alert from '@cloudscape-design/components/alert';
import { Link, useLocation } from 'wouter';
import { EnabledState } from '../automations/automation.tsx';
import { call, useApi } from '../data/api.ts';
import { Action, word } from '../parts/action.tsx';
import { Page } from '../parts/page.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { Problem } from '../parts/problem.tsx';
import { Facts, Section } from '../parts/section.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { EnableOrDisable, type Schedule, timesOf } from './schedule.tsx';
import { ScheduleForm } from './schedule-form.tsx';

export default function SchedulePage({ name }: { name: string }) {
  const { data: schedule, error, refetch } = useApi('GET /api/v1/schedules/{name}', { params: { name } });
  if (!schedule) {
    return <Page title="Schedule">{error ? <Problem error={error} retry={refetch} /> : 'Loading …'}</Page>;
  }
  // Times change by themselves; they must not reset the form.
  const { nextRuns: _n, lastRun: _r, lastError: _e, missed: _m, ...definition } = schedule;
  return (
    <Page
      title={name}
      description={<UntrustedText text={schedule.description ?? 'When an automation runs without an event.'} />}
      actions={
        <div className="buttons">
          <EnableOrDisable schedule={schedule} />
          <DeleteSchedule name={name} />
        </div>
      }
    >
      <ScheduleState schedule={schedule} />
      <Section title="Change">
        <ScheduleForm key={JSON.stringify(definition)} schedule={schedule} onSaved={() => undefined} />
      </Section>
    </Page>
  );
}

function DeleteSchedule({ name }: { name: string }) {
  const [, go] = useLocation();
  return (
    <Action
      label="Delete the schedule"
      effect={
        <p>
          <UntrustedText text={name} /> starts no more runs. Its runs stay.
        </p>
      }
      right="automations:write"
      command={() => `countersign schedules delete ${word(name)}`}
      run={async () => {
        await call('DELETE /api/v1/schedules/{name}', { params: { name } });
        go('/schedules');
        return `${name} is deleted.`;
      }}
    />
  );
}

function ScheduleState({ schedule }: { schedule: Schedule }) {
  const { enabled, automation, nextRuns, lastRun, lastError, missed, makers } = schedule;
  return (
    <>
      {lastError && (
        <Alert type="error" header={`A scheduled time started no run: ${lastError.code}`}>
          <UntrustedText text={lastError.message} max={1_000} lines="many" /> (<PointInTime at={lastError.slot} />)
        </Alert>
      )}
      <Facts
        facts={[
          ['State', <EnabledState key="state" isEnabled={enabled} />],
          [
            'Runs',
            <Link key="automation" href={`/automations/${encodeURIComponent(automation)}`}>
              <UntrustedText text={automation} />
            </Link>,
          ],
          ['Times', <UntrustedText key="times" text={timesOf(schedule)} />],
          ['Next runs', nextRuns.length === 0 ? 'none' : <NextRuns key="next" times={nextRuns} />],
          [
            'Last run',
            lastRun ? (
              <Link key="last" href={`/runs/${encodeURIComponent(lastRun.runId)}`}>
                <PointInTime at={lastRun.slot} />
              </Link>
            ) : (
              'never'
            ),
          ],
          ['Missed times', missed ? String(missed.slots) : 'none'],
          ['Cannot approve its writes', <UntrustedText key="makers" text={makers.join(', ')} />],
        ]}
      />
    </>
  );
}

function NextRuns({ times }: { times: readonly string[] }) {
  return (
    <ul className="plain-list">
      {times.map((at) => (
        <li key={at}>
          <PointInTime at={at} />
        </li>
      ))}
    </ul>
  );
}
