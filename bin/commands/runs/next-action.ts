import type { RunDetail } from '../../client/api-client.ts';

/** What a person can do about the run now, with the command; undefined if nothing needs to be done. */
export function nextAction(run: RunDetail, shownId: string): string | undefined {
  const command = (words: string) => `npx countersign ${words}`;
  switch (run.status) {
    case 'waiting_approval':
      return `decide: ${command(`approvals show ${shownId}`)}, then approvals approve or reject`;
    case 'paused':
      return `continue: ${command(`runs resume ${shownId}`)}`;
    case 'failed_retryable': {
      const held = run.steps.find((step) => step.status === 'failed_retryable' && step.flag !== undefined);
      const flag = held?.status === 'failed_retryable' ? held.flag : undefined;
      if (flag !== undefined) {
        return `it waits until ${flag} is on, and then continues by itself: ${command(`settings set features.${flag}=true`)}`;
      }
      return `it tries again by itself; at once: ${command(`runs retry ${shownId}`)}`;
    }
    case 'needs_human':
    case 'failed_terminal':
    case 'timed_out': {
      if (run.resolution || run.rolledBackBy) return undefined;
      const unknown = run.receipts.filter(
        ({ outcome, runId }) => runId === run.runId && (outcome === 'unknown' || outcome === 'intent'),
      );
      const findings = unknown.map(({ stepId }) => ` --write ${stepId}=happened|did_not`).join('');
      const check = unknown.length > 0 ? 'check the targets, then ' : '';
      // A rollback run cannot be repeated, and a rerun of the run that it undoes would make the writes again.
      const mayRepeat = run.status !== 'needs_human' && !run.rollbackOf;
      const again = mayRepeat ? `repeat: ${command(`runs rerun ${shownId}`)}; or ` : '';
      const correct = run.rollbackOf ? 'correct by hand what was not undone, then ' : '';
      return `${again}${check}${correct}close: ${command(`runs resolve ${shownId} --as succeeded|failed --reason TEXT${findings}`)}`;
    }
    case 'succeeded':
    case 'canceled':
      return undefined;
    default:
      return `follow it: ${command(`runs watch ${shownId}`)}`;
  }
}
