import Alert from '@cloudscape-design/components/alert';
import StatusIndicator from '@cloudscape-design/components/status-indicator';
import { Link, useLocation } from 'wouter';
import { useApi } from '../data/api.ts';
import { useLive } from '../data/live.ts';
import { Copyable } from '../parts/copyable.tsx';
import { Page } from '../parts/page.tsx';
import { PointInTime } from '../parts/point-in-time.tsx';
import { EmptyState, Problem } from '../parts/problem.tsx';
import { Facts, Section } from '../parts/section.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import { DrainOrResume, RemoveAgent } from './agent-actions.tsx';
import { type Agent, AgentState } from './agent-state.tsx';

export default function AgentPage({ id }: { id: string }) {
  const { data: agent, error, refetch } = useLive('GET /api/v1/agents/{id}', { params: { id } }, { topic: 'tenant' });
  const [, go] = useLocation();
  if (!agent) return <Page title="Agent">{error ? <Problem error={error} retry={refetch} /> : 'Loading …'}</Page>;
  return (
    <Page
      title={agent.name}
      heading={<UntrustedText text={agent.name} max={63} />}
      description={<AgentState state={agent.state} />}
      actions={
        <div className="buttons">
          <DrainOrResume agent={agent} />
          <RemoveAgent agent={agent} onRemoved={() => go('/agents')} />
        </div>
      }
    >
      <Explained agent={agent} />
      <Section title="Runs now">
        <Commands agent={agent} />
      </Section>
      <Section title="What it can run">
        <Process agent={agent} />
      </Section>
      <Section title="Enrolment">
        <Facts
          facts={[
            ['Enrolled for', <UntrustedText key="for" text={agent.environments.join(', ')} />],
            ['Network segment', <UntrustedText key="segment" text={agent.networkSegment ?? 'none'} />],
            ['Enrolled', <PointInTime key="at" at={agent.enrolledAt} />],
            ['By', <UntrustedText key="by" text={agent.enrolledBy} />],
            ['ID', <Copyable key="id" text={agent.agentId} label="the ID of the agent" />],
            ['SHA-256 of its key', <Copyable key="key" text={agent.keyThumbprint} label="the hash of its key" />],
          ]}
        />
      </Section>
    </Page>
  );
}

/** Why it gets no commands. */
function Explained({ agent: { errored, draining, state, lastSyncAt, stoppedAt } }: { agent: Agent }) {
  return (
    <>
      {errored && (
        <Alert type="error" header="The agent reported an error and gets no commands">
          <UntrustedText text={errored.reason} lines="many" max={1_000} /> (<PointInTime at={errored.at} />)
        </Alert>
      )}
      {draining && (
        <Alert type="info" header="The agent gets no new commands">
          <UntrustedText text={draining.by} /> drained it <PointInTime at={draining.at} />
          {draining.reason !== undefined && (
            <>
              : <UntrustedText text={draining.reason} max={500} />
            </>
          )}
          . Resume it to let it get commands again.
        </Alert>
      )}
      {state === 'offline' && (
        <Alert type="warning" header="It does not sync">
          {lastSyncAt !== null ? (
            <>
              It last synced <PointInTime at={lastSyncAt} />.{' '}
            </>
          ) : stoppedAt !== null ? (
            <>
              It stopped <PointInTime at={stoppedAt} />.{' '}
            </>
          ) : (
            'It has never synced. '
          )}
          Start it on its machine: <code>countersign agent run</code>
        </Alert>
      )}
    </>
  );
}

function Commands({ agent: { commands } }: { agent: Agent }) {
  if (commands.length === 0) return <p className="secondary">The agent has no commands.</p>;
  return (
    <ul className="plain-list">
      {commands.map((command) => (
        <CommandItem key={command.assignmentId} command={command} />
      ))}
    </ul>
  );
}

function CommandItem({ command: { runId, stepIndex, state, until } }: { command: Agent['commands'][number] }) {
  const { data: run } = useApi('GET /api/v1/runs/{id}', { params: { id: runId } });
  const step = run?.steps.find(({ index }) => index === stepIndex)?.id ?? `number ${stepIndex + 1}`;
  return (
    <li>
      Step <UntrustedText text={step} /> of{' '}
      <Link href={`/runs/${encodeURIComponent(runId)}`}>
        <UntrustedText text={run?.title ?? run?.subject ?? runId} max={120} />
      </Link>
      : {state === 'offered' ? 'offered; the agent has not accepted it yet' : 'running'}. It is lost{' '}
      <PointInTime at={until} /> unless the agent syncs.
    </li>
  );
}

function Process({ agent: { process } }: { agent: Agent }) {
  const { data } = useApi('GET /api/v1/profiles', {});
  if (!process) {
    return (
      <EmptyState title="No process of this agent has registered">
        Start it on its machine: <code>countersign agent run</code>. It then probes which profiles its host provides.
      </EmptyState>
    );
  }
  const { host, capabilities, environments, slots, freeSlots, version, registeredAt, profiles } = process;
  return (
    <>
      <Facts
        facts={[
          ['Slots', `${freeSlots} of ${slots} free`],
          ['Environments', <UntrustedText key="for" text={environments.join(', ')} />],
          ['Capabilities', <UntrustedText key="can" text={capabilities.join(', ') || 'none'} max={1_000} />],
          ['Version', <UntrustedText key="version" text={version} />],
          ['Host', <UntrustedText key="host" text={`${host.platform} ${host.arch}, Node.js ${host.node}`} />],
          ['Registered', <PointInTime key="at" at={registeredAt} />],
        ]}
      />
      <table className="grid">
        <caption>Profiles: how a command is isolated. The agent tested its host when it started.</caption>
        <thead>
          <tr>
            <th scope="col">Profile</th>
            <th scope="col">Isolation</th>
            <th scope="col">Allowed commands</th>
          </tr>
        </thead>
        <tbody>
          {(data?.profiles ?? []).map(({ name, allow, deny }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>
                {profiles.includes(name) ? (
                  <StatusIndicator type="success">Provided by the host</StatusIndicator>
                ) : (
                  <StatusIndicator type="stopped">
                    Not provided; <code>countersign agent doctor</code> says why
                  </StatusIndicator>
                )}
              </td>
              <td>
                {allow === null ? 'All that are not denied' : allow.length} ({deny.length} denied)
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
