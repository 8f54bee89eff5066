import StatusIndicator, { type StatusIndicatorProps } from '@cloudscape-design/components/status-indicator';
import type { ResponseFrom } from '../../client/api-client.ts';

export type Agent = ResponseFrom<'GET /api/v1/agents/{id}'>;

const STATES: Record<Agent['state'], { type: StatusIndicatorProps.Type; text: string }> = {
  idle: { type: 'success', text: 'Idle' },
  assigned: { type: 'in-progress', text: 'Assigned' },
  executing: { type: 'in-progress', text: 'Runs a command' },
  draining: { type: 'stopped', text: 'Draining' },
  errored: { type: 'error', text: 'Error' },
  offline: { type: 'warning', text: 'Offline' },
};

export function AgentState({ state }: { state: Agent['state'] }) {
  const { type, text } = STATES[state];
  return <StatusIndicator type={type}>{text}</StatusIndicator>;
}
