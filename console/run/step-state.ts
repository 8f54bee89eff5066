import type { StatusIndicatorProps } from '@cloudscape-design/components/status-indicator';
import type { RunApproval, Step } from '../data/run.ts';

const STEP_STATES: Record<Step['status'], { type: StatusIndicatorProps.Type; text: string }> = {
  pending: { type: 'pending', text: 'Not reached' },
  ready: { type: 'in-progress', text: 'Ready' },
  running: { type: 'in-progress', text: 'Running' },
  failed_retryable: { type: 'warning', text: 'Retrying' },
  waiting_approval: { type: 'pending', text: 'Waits for approval' },
  waiting_external: { type: 'pending', text: 'Waits' },
  succeeded: { type: 'success', text: 'Succeeded' },
  rolled_back: { type: 'warning', text: 'Undone' },
  failed_terminal: { type: 'error', text: 'Failed' },
  canceled: { type: 'stopped', text: 'Canceled' },
};

export const stateOf = (step: Step) =>
  step.status === 'succeeded' && step.skipped
    ? { type: 'stopped' as const, text: 'Skipped' }
    : step.status === 'waiting_external' && step.session
      ? { type: 'in-progress' as const, text: 'Session at work' }
      : STEP_STATES[step.status];

/** What a step did in a part of its time. */
export interface Span {
  kind: 'working' | 'people' | 'external' | 'failed';
  fromMs: number;
  toMs: number;
}

/** When the step worked, and when it waited for people, a signal or a time. Approvals say when people were asked. */
export function spansOf(step: Step, approvals: readonly RunApproval[], nowMs: number): Span[] {
  if (step.status === 'pending' || step.startedAt === undefined) return [];
  const startMs = Date.parse(step.startedAt);
  const endMs = 'completedAt' in step ? Date.parse(step.completedAt) : Math.max(nowMs, startMs);
  const waits = approvals
    .filter(({ stepId }) => stepId === step.id)
    .map(({ requestedAt, decidedAt }) => [
      Date.parse(requestedAt),
      decidedAt === undefined ? endMs : Date.parse(decidedAt),
    ])
    .filter(([from = 0, to = 0]) => to > from)
    .sort(([a = 0], [b = 0]) => a - b);
  const otherwise: Span['kind'] =
    step.status === 'waiting_external' || isWait(step)
      ? 'external'
      : step.status === 'failed_terminal'
        ? 'failed'
        : 'working';
  const spans: Span[] = [];
  let atMs = startMs;
  for (const [from = 0, to = 0] of waits) {
    if (from > atMs) spans.push({ kind: otherwise, fromMs: atMs, toMs: from });
    spans.push({ kind: 'people', fromMs: Math.max(from, atMs), toMs: Math.max(to, atMs) });
    atMs = Math.max(to, atMs);
  }
  if (endMs > atMs || spans.length === 0) spans.push({ kind: otherwise, fromMs: atMs, toMs: endMs });
  return spans;
}

const isWait = ({ tool }: Step): boolean => tool === 'wait' || tool.startsWith('wait.');
