import type { StatusProblem } from '../contract/operations.ts';

type Texts = Pick<StatusProblem, 'severity' | 'command' | 'runbook'> & { one: string; many: string };

/** `#` is the number. Each heading is one of the RUNBOOK. */
const TEXTS: Record<StatusProblem['kind'], Texts> = {
  sweeper_silent: {
    severity: 'act',
    one: 'the sweeper has not run: lost messages are not sent again',
    many: 'the sweeper has not run: lost messages are not sent again',
    command: 'npx countersign status',
    runbook: 'The sweeper does not sweep',
  },
  due_rows: {
    severity: 'act',
    one: '1 row is due and has not been processed',
    many: '# rows are due, the oldest has not been processed',
    command: 'npx countersign runs list --status running',
    runbook: 'Due rows are not sent',
  },
  needs_human: {
    severity: 'act',
    one: '1 run needs a human',
    many: '# runs need a human',
    command: 'npx countersign runs list --needs-resolution',
    runbook: 'A run needs a human',
  },
  approvals_overdue: {
    severity: 'act',
    one: '1 run waits for an overdue approval',
    many: '# runs wait for overdue approvals',
    command: 'npx countersign runs list --overdue',
    runbook: 'Approvals are overdue',
  },
  dead_letters: {
    severity: 'act',
    one: '1 message is in a dead-letter queue',
    many: '# messages are in dead-letter queues',
    command: 'npx countersign dead-letters list',
    runbook: 'Messages in a dead-letter queue',
  },
  outbox_stuck: {
    severity: 'act',
    one: '1 outbox entry is stuck',
    many: '# outbox entries are stuck',
    command: 'npx countersign outbox redrive --dry-run',
    runbook: 'An outbox entry was not completed',
  },
  not_sealed: {
    severity: 'act',
    one: '1 ended run is not sealed',
    many: '# ended runs are not sealed',
    command: 'npx countersign dead-letters list --queue evidence',
    runbook: 'A run is not sealed',
  },
  connection_missing: {
    severity: 'act',
    one: '1 run failed in the last day because a connection is missing',
    many: '# runs failed in the last day because a connection is missing',
    command: 'npx countersign runs list --error CONNECTION_MISSING --since 24h',
    runbook: 'Setting up a tenant',
  },
  failed: {
    severity: 'watch',
    one: '1 run failed in the last day',
    many: '# runs failed in the last day',
    command: 'npx countersign runs list --status failed_terminal --since 24h',
    runbook: 'Codes on runs and steps',
  },
  timed_out: {
    severity: 'watch',
    one: '1 run timed out in the last day',
    many: '# runs timed out in the last day',
    command: 'npx countersign runs list --status timed_out --since 24h',
    runbook: 'A run does not move',
  },
  paused: {
    severity: 'watch',
    one: '1 run is paused',
    many: '# runs are paused',
    command: 'npx countersign runs list --status paused',
    runbook: 'A run does not move',
  },
  waiting_for_slot: {
    severity: 'watch',
    one: '1 run has been queued for more than 5 minutes',
    many: '# runs have been queued for more than 5 minutes',
    command: 'npx countersign runs list --status queued',
    runbook: 'A run does not move',
  },
  retrying: {
    severity: 'watch',
    one: '1 run accepted more than 15 minutes ago is retrying a step',
    many: '# runs accepted more than 15 minutes ago are retrying a step',
    command: 'npx countersign runs list --status failed_retryable',
    runbook: 'A run does not move',
  },
  writes_off: {
    severity: 'act',
    one: 'writes are switched off: steps that would write wait',
    many: 'writes are switched off: steps that would write wait',
    command: 'npx countersign settings set features.writes.enabled=true',
    runbook: 'Stop all writes',
  },
  agents_off: {
    severity: 'act',
    one: 'agents are switched off: steps with commands wait',
    many: 'agents are switched off: steps with commands wait',
    command: 'npx countersign settings set features.worker_orchestration.enabled=true',
    runbook: 'Stop all writes',
  },
};

export function problemText(kind: StatusProblem['kind'], count: number, atLeast?: true) {
  const { one, many, severity, command, runbook } = TEXTS[kind];
  const what = count === 1 && !atLeast ? one : many.replace('#', `${atLeast ? 'more than ' : ''}${count}`);
  return { what, severity, command, runbook };
}

/** For the test that compares them with the RUNBOOK and the commands. */
export const STATUS_TEXTS = TEXTS;
