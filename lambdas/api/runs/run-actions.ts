import { may, type Right } from '../../people/rights.ts';
import { isUnknownOutcome } from '../../run/errors.ts';
import { isTerminal, type Run } from '../../run/run.ts';
import { receiptKeyOf, type Step } from '../../run/step.ts';
import type { Caller } from '../authorizer/caller.ts';
import type { RunAction } from '../contract/runs/runs.ts';

interface Situation {
  run: Run;
  rows: readonly Step[];
  isSealed: boolean;
}

interface Rule {
  action: RunAction['action'];
  right: Right;
  effect: string;
  /** Undefined: the action makes no sense for this run now. Otherwise why it is refused, or '' if it is not. */
  refusal(situation: Situation, caller: Caller): string | undefined;
  /** A step or an event that the action is about. */
  about?(situation: Situation): string | undefined;
}

const failedForGood = (rows: readonly Step[]) => rows.find((step) => step.status === 'failed_terminal');
const awaitedSignal = (rows: readonly Step[]): string | undefined =>
  rows.flatMap((step) =>
    step.status === 'waiting_external' && step.awaits.kind === 'signal' ? [step.awaits.event] : [],
  )[0];
const hasWritten = (rows: readonly Step[]): boolean =>
  rows.some((step) => step.status === 'succeeded' && receiptKeyOf(step) !== undefined);

const NOT_SEALED = 'the evidence of the run is not sealed yet; try again in a moment';

const RULES: readonly Rule[] = [
  {
    action: 'retry',
    right: 'runs:control',
    effect: 'Tries the failed step again now, with new attempts. Policy decides again.',
    refusal({ run, rows }) {
      if (isTerminal(run)) return undefined;
      const waits = rows.some(({ status }) => status === 'failed_retryable');
      const failed = failedForGood(rows);
      const retryable = run.status === 'paused' && failed?.status === 'failed_terminal' && !failed.wrote;
      return waits || retryable ? '' : undefined;
    },
    about: ({ rows }) => rows.find(({ status }) => status === 'failed_retryable' || status === 'failed_terminal')?.id,
  },
  {
    action: 'resume',
    right: 'runs:control',
    effect: 'Continues the run where it stopped.',
    refusal({ run, rows }) {
      if (run.status !== 'paused') return undefined;
      const failed = failedForGood(rows);
      return failed ? `${failed.id} has failed; retry it, or roll back or cancel the run` : '';
    },
  },
  {
    action: 'signal',
    right: 'runs:control',
    effect: 'Sends the signal that a step waits for. You become a maker of what the run writes with it.',
    refusal: ({ run, rows }) => (isTerminal(run) || awaitedSignal(rows) === undefined ? undefined : ''),
    about: ({ rows }) => awaitedSignal(rows),
  },
  {
    action: 'pause',
    right: 'runs:control',
    effect: 'Starts no further step until somebody resumes the run. What is being performed now finishes.',
    refusal({ run }) {
      if (isTerminal(run) || run.status === 'paused' || run.stopRequest) return undefined;
      if (run.status === 'queued') return 'the run has not started; cancel it, or pause it when it runs';
      return run.status === 'rolling_back' ? 'the run is rolling back; it can only be canceled' : '';
    },
  },
  {
    action: 'cancel',
    right: 'runs:control',
    effect: 'Ends the run. What is being performed now finishes; writes that were made stay.',
    refusal: ({ run }) => (isTerminal(run) || run.stopRequest?.kind === 'cancel' ? undefined : ''),
  },
  {
    action: 'rollback',
    right: 'runs:control',
    effect:
      'Undoes the writes of the run, the newest first, each under policy. Writes that somebody has changed since stay.',
    refusal({ run, rows, isSealed }) {
      if (run.status === 'rolling_back' || run.rolledBackBy !== undefined || run.rollbackOf) return undefined;
      if (!hasWritten(rows)) return isTerminal(run) ? undefined : 'the run has made no write yet';
      return isTerminal(run) && !isSealed ? NOT_SEALED : '';
    },
  },
  {
    action: 'resolve',
    right: 'runs:resolve',
    effect: 'Records how the run was settled, and whether each unknown write was made. This is final.',
    refusal({ run, rows, isSealed }) {
      if (!isTerminal(run) || run.resolution) return undefined;
      const isOpen = ['needs_human', 'failed_terminal', 'timed_out'].includes(run.status);
      const isUnknown = rows.some((step) => 'error' in step && isUnknownOutcome(step.error.code));
      if (!isOpen && !isUnknown) return undefined;
      return isSealed ? '' : NOT_SEALED;
    },
  },
  {
    action: 'rerun',
    right: 'runs:start',
    effect: 'Starts a new run with the same trigger, under the policies of now. Identical writes are not made twice.',
    refusal: ({ run }) => (isTerminal(run) && !run.rollbackOf ? '' : undefined),
  },
  {
    action: 'replay',
    right: 'runs:start',
    effect:
      'Starts a new run that repeats this one from the first step that did not succeed. Earlier steps are not repeated.',
    refusal: ({ run }) => (isTerminal(run) && run.status !== 'succeeded' && !run.rollbackOf ? '' : undefined),
  },
  {
    action: 'assign',
    right: 'runs:assign',
    effect: 'Assigns the run to you.',
    refusal: ({ run }, { person }) =>
      run.assignee === person ? undefined : run.assignee === undefined ? '' : `it is assigned to ${run.assignee}`,
  },
  {
    action: 'release',
    right: 'runs:assign',
    effect: 'Ends the assignment, so that another person can take the run.',
    refusal: ({ run }, { person }) => (run.assignee === person ? '' : undefined),
  },
];

const COMMANDS: Record<RunAction['action'], (id: string, about: string | undefined) => string> = {
  retry: (id, step) => `runs retry ${id}${step === undefined ? '' : ` --step ${step}`}`,
  resume: (id) => `runs resume ${id}`,
  signal: (id, event = 'EVENT') => `runs signal ${id} --event ${event}`,
  pause: (id) => `runs pause ${id}`,
  cancel: (id) => `runs cancel ${id}`,
  rollback: (id) => `runs rollback ${id}`,
  resolve: (id) => `runs resolve ${id} --as succeeded|failed --reason TEXT`,
  rerun: (id) => `runs rerun ${id}`,
  replay: (id) => `runs replay ${id}`,
  assign: (id) => `runs assign ${id}`,
  release: (id) => `runs release ${id}`,
};

/** What can be done with a run now, with its effect, and whether the caller may do it. The routes themselves decide. */
export function runActions(situation: Situation, caller: Caller): RunAction[] {
  return RULES.flatMap((rule) => {
    const refusal = rule.refusal(situation, caller);
    if (refusal === undefined) return [];
    const about = rule.about?.(situation);
    const lacks = may(caller.role, rule.right) ? '' : `your role ${caller.role} lacks the right ${rule.right}`;
    const why = lacks || refusal;
    return {
      action: rule.action,
      effect: rule.effect,
      may: why === '',
      ...(why !== '' && { why }),
      ...(about !== undefined && { about }),
      command: `npx countersign ${COMMANDS[rule.action](situation.run.runId, about)}`,
    };
  });
}
