import { breachAt, isUndo, text } from './event-fields.ts';
import type { Breach, Rule } from './rule.ts';
import type { Attempt, RunHistory } from './run-history.ts';

/** A breach for each attempt with a problem. */
export const attemptsWith = ({ attempts }: RunHistory, problemOf: (attempt: Attempt) => string | undefined): Breach[] =>
  attempts.flatMap((attempt) => {
    const problem = problemOf(attempt);
    return problem === undefined ? [] : [breachAt(attempt.intended, problem)];
  });

/** Rules about each call to a target: reads, writes and undos. */
export const CALL_RULES: readonly Rule[] = [
  {
    number: 1,
    name: 'policy-decides-first',
    description:
      'Before each `write.intended` and its `step.claimed`, the same commit has a `policy.decided` of the step.',
    check: (history) =>
      attemptsWith(history, ({ decided, intended }) =>
        decided?.seq === intended.seq ? undefined : 'begins a call on which policy did not decide in this commit',
      ),
  },
  {
    number: 2,
    name: 'denied-calls-are-not-made',
    description: 'The last decision on a call before it begins is `allow` or `needs_approval`.',
    check: (history) =>
      attemptsWith(history, ({ decided }) => {
        const verdict = decided?.event.verdict;
        if (verdict === undefined || verdict === 'allow' || verdict === 'needs_approval') return undefined;
        return `makes a call although policy decided: ${text(verdict)}`;
      }),
  },
  {
    number: 3,
    name: 'decided-call-is-made',
    description:
      'A call has the step, tool and target on which policy decided last; its claim has the same step and tool.',
    check: (history) =>
      attemptsWith(history, ({ intended: { event }, claimed, decided }) => {
        const names = [claimed?.event, decided?.event].filter((each) => each !== undefined);
        const other = names.find(({ step, tool }) => step !== event.step || tool !== event.tool);
        if (other) return `calls ${text(event.tool)} in ${text(event.step)}; ${other.type} has ${nameOf(other)}`;
        const target = decided?.event.target;
        if (target === undefined || target === event.target) return undefined;
        return `writes to ${text(event.target)}; policy decided on ${text(target)}`;
      }),
  },
  {
    number: 13,
    name: 'calls-only-while-running',
    description:
      'After a commit that begins a call the run is `running`, or `rolling_back` if the call is an undo (index 5000 or more).',
    check: (history) =>
      attemptsWith(history, ({ index, status }) => {
        const due = isUndo(index) ? 'rolling_back' : 'running';
        return status === due ? undefined : `begins a call in a run that is ${status}, not ${due}`;
      }),
  },
  {
    number: 14,
    name: 'nothing-starts-after-a-stop',
    description:
      'After `run.stop_requested` no call begins, until the run changes from `paused` to `running` or to `rolling_back`.',
    check: (history) =>
      attemptsWith(history, ({ stop }) =>
        stop ? `begins a call after ${text(stop.event.kind)} was requested in commit ${stop.seq}` : undefined,
      ),
  },
];

const nameOf = ({ step, tool }: Record<string, unknown>) => `${text(tool)} in ${text(step)}`;
