import { Link } from 'wouter';
import { useApi } from '../data/api.ts';
import { Page } from '../parts/page.tsx';
import { Problem } from '../parts/problem.tsx';
import { Facts, Section } from '../parts/section.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { RunNow } from '../workflows/run-now.tsx';
import { type Automation, EnabledState, EnableOrDisable, eventOf } from './automation.tsx';
import { AutomationForm } from './automation-form.tsx';

export default function AutomationPage({ name }: { name: string }) {
  const { data: automation, error, refetch } = useApi('GET /api/v1/automations/{name}', { params: { name } });
  if (!automation) {
    return <Page title="Automation">{error ? <Problem error={error} retry={refetch} /> : 'Loading …'}</Page>;
  }
  const { workflow, triggers, enabled, description, workspace, notifications, configuration, instructions } =
    automation;
  const tools = (automation.session?.actions ?? []).map(({ tool }) => tool);
  const filters = triggers.flatMap((trigger) => ('filter' in trigger && trigger.filter ? [trigger.filter] : []));
  const notified = notifications.map((each) => ('channel' in each ? each.channel : each.person));
  return (
    <Page
      title={name}
      description={
        <UntrustedText text={description ?? 'Says which event starts which version of a workflow, or which session.'} />
      }
      actions={<EnableOrDisable automation={automation} />}
    >
      <Facts
        facts={[
          ['State', <EnabledState key="state" isEnabled={enabled} />],
          ['Started by', <UntrustedText key="event" text={eventOf(automation)} />],
          ['Filter', <UntrustedText key="filter" text={filters.join('; ') || 'none'} max={600} />],
          [
            'Workflow',
            <Link key="workflow" href={`/workflows/${encodeURIComponent(workflow.name)}`}>
              <UntrustedText text={`${workflow.name}, version ${workflow.version}`} />
            </Link>,
          ],
          ...(instructions === undefined
            ? []
            : [
                [
                  'Instructions',
                  <UntrustedText key="instructions" text={instructions} lines="many" max={20_000} />,
                ] as const,
                [
                  'May propose',
                  <UntrustedText key="tools" text={[...new Set(tools)].join(', ') || 'nothing'} />,
                ] as const,
              ]),
          ['Notified at the end', <UntrustedText key="notified" text={notified.join(', ') || 'nobody'} />],
          ...(configuration
            ? [['Sessions', <UntrustedText key="sessions" text={sessionsOf(configuration)} />] as const]
            : []),
          ['Workspace', <UntrustedText key="workspace" text={workspace} />],
          [
            'Runs',
            <Link key="runs" href={`/runs?automation=${encodeURIComponent(name)}`}>
              Show its runs
            </Link>,
          ],
        ]}
      />
      <Section title="Run now">
        <Start automation={automation} />
      </Section>
      <Section title="Change">
        <AutomationForm key={JSON.stringify(automation)} automation={automation} onSaved={() => undefined} />
      </Section>
    </Page>
  );
}

const sessionsOf = (configuration: NonNullable<Automation['configuration']>): string =>
  configuration.strategy === 'fixed' ? configuration.default : `a model picks from ${configuration.allow.join(', ')}`;

/** The form depends on the inputs of the version that the automation runs. */
function Start({ automation: { name, enabled, workflow, inputs } }: { automation: Automation }) {
  const { data, error } = useApi('GET /api/v1/workflows/{name}/versions/{version}', {
    params: { name: workflow.name, version: String(workflow.version) },
  });
  if (error) return <Problem error={error} />;
  if (!data) return <p>Loading …</p>;
  return (
    <RunNow
      of={{ automation: name, isEnabled: enabled }}
      inputs={data.definition.inputs ?? {}}
      {...(inputs && { given: inputs })}
    />
  );
}
