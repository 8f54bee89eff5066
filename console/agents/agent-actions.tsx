import { call } from '../data/api.ts';
import { Action, word } from '../parts/action.tsx';
import { UntrustedText } from '../parts/untrusted-text.tsx';
import type { Agent } from './agent-state.tsx';

/** Drain or resume, whichever is possible. Rows of the list have short labels. */
export function DrainOrResume({ agent, isRow = false }: { agent: Agent; isRow?: boolean }) {
  const { agentId: id, name, commands, draining } = agent;
  const params = { id };
  if (draining) {
    return (
      <Action
        label={isRow ? 'Resume' : 'Resume the agent'}
        confirm="Resume the agent"
        about={name}
        effect={
          <p>
            <UntrustedText text={name} /> gets commands again.
          </p>
        }
        right="agents:control"
        command={() => `countersign agents resume ${word(name)}`}
        run={async () => {
          await call('POST /api/v1/agents/{id}/resume', { params, body: {} });
          return `${name} gets commands again.`;
        }}
      />
    );
  }
  return (
    <Action
      label={isRow ? 'Drain' : 'Drain the agent'}
      confirm="Drain the agent"
      about={name}
      effect={
        <p>
          <UntrustedText text={name} /> {stillRuns(commands.length)} It accepts no new commands until somebody resumes
          it.
        </p>
      }
      right="agents:control"
      reason={{ label: 'Reason', required: false }}
      command={(reason) => `countersign agents drain ${word(name)}${reason && ` --reason ${word(reason)}`}`}
      run={async (reason) => {
        await call('POST /api/v1/agents/{id}/drain', { params, body: reason === '' ? {} : { reason } });
        return `${name} drains: it accepts no new commands.`;
      }}
    />
  );
}

const stillRuns = (count: number): string =>
  count === 0 ? 'runs nothing now.' : `finishes the ${count === 1 ? 'command' : `${count} commands`} that it runs.`;

export function RemoveAgent({ agent, onRemoved }: { agent: Agent; onRemoved(): void }) {
  const { agentId: id, name, commands } = agent;
  return (
    <Action
      label="Remove the agent"
      effect={
        <p>
          The key of <UntrustedText text={name} /> is refused from now on.{' '}
          {commands.length > 0
            ? `The ${commands.length} running are lost when their leases end; drain the agent first to let them finish.`
            : 'It runs nothing now.'}{' '}
          To use the machine again, enrol it again.
        </p>
      }
      right="agents:write"
      command={() => `countersign agents remove ${word(name)}`}
      run={async () => {
        await call('DELETE /api/v1/agents/{id}', { params: { id } });
        onRemoved();
        return `${name} is removed.`;
      }}
    />
  );
}
