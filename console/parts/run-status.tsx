import StatusIndicator, { type StatusIndicatorProps } from '@cloudscape-design/components/status-indicator';
import type { ResponseFrom } from '../../client/api-client.ts';

export type RunSummary = ResponseFrom<'GET /api/v1/runs'>['runs'][number];
export type RunStatus = RunSummary['status'];

/** In the order in which people look for them. */
export const RUN_STATUSES: Record<RunStatus, { type: StatusIndicatorProps.Type; text: string }> = {
  needs_human: { type: 'warning', text: 'Needs a person' },
  waiting_approval: { type: 'pending', text: 'Waits for approval' },
  running: { type: 'in-progress', text: 'Running' },
  ready: { type: 'in-progress', text: 'Ready' },
  failed_retryable: { type: 'warning', text: 'Retrying' },
  waiting_external: { type: 'pending', text: 'Waits for a signal, a time or a session' },
  rolling_back: { type: 'in-progress', text: 'Rolling back' },
  paused: { type: 'stopped', text: 'Paused' },
  queued: { type: 'pending', text: 'Queued' },
  enriching: { type: 'in-progress', text: 'Reading the trigger' },
  failed_terminal: { type: 'error', text: 'Failed' },
  timed_out: { type: 'error', text: 'Timed out' },
  canceled: { type: 'stopped', text: 'Canceled' },
  succeeded: { type: 'success', text: 'Succeeded' },
};

const ENDED: readonly RunStatus[] = ['succeeded', 'failed_terminal', 'needs_human', 'timed_out', 'canceled'];
export const hasEnded = (status: RunStatus): boolean => ENDED.includes(status);

export function RunStatusText({ status }: { status: RunStatus }) {
  const { type, text } = RUN_STATUSES[status];
  return <StatusIndicator type={type}>{text}</StatusIndicator>;
}
