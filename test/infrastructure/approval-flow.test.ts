import { describe, expect, it } from 'vitest';
import { stageSeconds } from '../../lambdas/outbox/outbox.ts';
import { synthesized } from './synthesized.ts';

interface State {
  Type: string;
  End?: boolean;
  Parameters?: { Payload: Record<string, unknown> };
  TimestampPath?: string;
  TimeoutSeconds?: number;
  TimeoutSecondsPath?: string;
  Retry?: { ErrorEquals: string[]; MaxAttempts: number; MaxDelaySeconds?: number }[];
  Branches?: { States: Record<string, State> }[];
  Catch?: { ErrorEquals: string[]; Next: string }[];
}

const EVENTS_PER_ATTEMPT = 5;
const HISTORY_MAX_EVENTS = 25_000;
const ESCALATION_STAGES = [
  ['Notify', '$.notifySeconds', '$.remindAt', 'Remind'],
  ['Remind', '$.remindSeconds', '$.slaAt', 'Escalate'],
  ['Escalate', '$.escalateSeconds', '$.expiresAt', 'ExpireApproval'],
] as const;

describe('the escalation stages of an approval', () => {
  const [machine] = synthesized('local').properties('AWS::StepFunctions::StateMachine');
  const states: Record<string, State> = JSON.parse(String(machine?.DefinitionString)).States;
  const inside = (escalationStage: string): State[] =>
    (states[`${escalationStage}Again`]?.Branches ?? []).flatMap((branch) => Object.values(branch.States));
  const people = (escalationStage: string) => inside(escalationStage).find(({ Type }) => Type === 'Task');

  it.each(ESCALATION_STAGES)(
    '%s is one state, which ends with the decision or after %s',
    (escalationStage, seconds, _until, next) => {
      const state = states[escalationStage];
      expect(state).toMatchObject({ Type: 'Task', TimeoutSecondsPath: seconds, End: true });
      expect(state?.Catch?.slice(0, 2)).toMatchObject([
        { ErrorEquals: ['ApprovalClosed'], Next: 'Closed' },
        { ErrorEquals: ['States.Timeout'], Next: next },
      ]);
    },
  );

  it.each(ESCALATION_STAGES)(
    '%s continues with retries if it fails, lasts until %s %s, independent of failures, and leads to %s',
    (escalationStage, _seconds, until, next) => {
      const again = `${escalationStage}Again`;
      expect(states[escalationStage]?.Catch?.at(-1)).toMatchObject({ ErrorEquals: ['States.ALL'], Next: again });
      expect(states[escalationStage]).not.toHaveProperty('Retry');
      expect(inside(escalationStage).filter(({ Type }) => Type === 'Wait')).toMatchObject([{ TimestampPath: until }]);
      expect(states[again]?.Catch?.at(-1)).toMatchObject({ ErrorEquals: ['States.ALL'], Next: next });
      expect(people(escalationStage)).not.toHaveProperty('TimeoutSeconds');
      expect(people(escalationStage)).not.toHaveProperty('TimeoutSecondsPath');
      // The function then searches for the card that the failed attempt may have posted.
      expect(people(escalationStage)?.Parameters?.Payload).toMatchObject({ after: 'failure' });
      expect(states[escalationStage]?.Parameters?.Payload).not.toHaveProperty('after');
    },
  );

  it.each(ESCALATION_STAGES)('%s ends the execution when there is a decision, without a retry', (escalationStage) => {
    const again = states[`${escalationStage}Again`];
    expect(again?.Catch?.[0]).toMatchObject({ ErrorEquals: ['ApprovalClosed'], Next: 'Closed' });
    expect(people(escalationStage)?.Retry?.[0]).toMatchObject({ ErrorEquals: ['ApprovalClosed'], MaxAttempts: 0 });
  });

  it('people are notified within a minute after Slack is available again, and all attempts fit into one execution history', () => {
    const retries = [
      ...ESCALATION_STAGES.map(([escalationStage]) => people(escalationStage)?.Retry?.slice(1)),
      states.ExpireApproval?.Retry,
    ];
    for (const retry of retries) expect(retry).toMatchObject([{ ErrorEquals: ['States.ALL'], MaxDelaySeconds: 60 }]);
    const attempts = retries.reduce((sum, [retry] = []) => sum + (retry?.MaxAttempts ?? 0), 0);
    expect(attempts * EVENTS_PER_ATTEMPT).toBeLessThan(HISTORY_MAX_EVENTS);
  });

  it.each([
    ['in time', '2026-01-01T10:00:00.400Z', [300, 600, 3_600]],
    ['after the time of the reminder', '2026-01-01T10:07:00.000Z', [1, 480, 3_600]],
    ['after all times', '2026-01-01T12:00:00.000Z', [1, 1, 1]],
  ])('stages of an execution that starts %s end at the times of the approval', (_when, now, lengths) => {
    const [remindAt, slaAt, expiresAt] = ['10:05', '10:15', '11:15'].map((time) => `2026-01-01T${time}:00.000Z`);
    const seconds = stageSeconds(
      { remindAt: `${remindAt}`, slaAt: `${slaAt}`, expiresAt: `${expiresAt}` },
      Date.parse(now),
    );
    expect(Object.values(seconds)).toEqual(lengths);
  });
});
