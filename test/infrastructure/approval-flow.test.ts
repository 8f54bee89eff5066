import { describe, expect, it } from 'vitest';
import { synthesized } from './synthesized.ts';

interface State {
  Type: string;
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
  ['Notify', '$.remindAt', 'Remind'],
  ['Remind', '$.slaAt', 'Escalate'],
  ['Escalate', '$.expiresAt', 'ExpireApproval'],
] as const;

describe('the escalation stages of an approval', () => {
  const [machine] = synthesized('local').properties('AWS::StepFunctions::StateMachine');
  const states: Record<string, State> = JSON.parse(String(machine?.DefinitionString)).States;
  const inside = (escalationStage: string): State[] =>
    (states[escalationStage]?.Branches ?? []).flatMap((branch) => Object.values(branch.States));
  const people = (escalationStage: string) => inside(escalationStage).find(({ Type }) => Type === 'Task');

  it.each(ESCALATION_STAGES)(
    '%s lasts until %s, independent of earlier stages and failures, and leads to %s',
    (escalationStage, until, next) => {
      expect(inside(escalationStage).filter(({ Type }) => Type === 'Wait')).toMatchObject([{ TimestampPath: until }]);
      expect(states[escalationStage]?.Catch?.at(-1)).toMatchObject({ ErrorEquals: ['States.ALL'], Next: next });
      expect(people(escalationStage)).not.toHaveProperty('TimeoutSeconds');
      expect(people(escalationStage)).not.toHaveProperty('TimeoutSecondsPath');
    },
  );

  it.each(ESCALATION_STAGES)('%s ends the execution when there is a decision, without a retry', (escalationStage) => {
    expect(states[escalationStage]?.Catch?.[0]).toMatchObject({ ErrorEquals: ['ApprovalClosed'], Next: 'Closed' });
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
});
