import { describe, expect, it } from 'vitest';
import type { PolicyDecision } from '../../lambdas/policy/policy.ts';
import { opensUp, type RecordedDecision, replay } from '../../lambdas/policy/replay.ts';
import { ALLOWED, FakePolicy } from '../fakes/fake-policy.ts';
import { aRequest } from './requests.ts';

const grounds = { policyHash: 'old', policies: ['old'], reasons: ['old'] };
const DENIED: PolicyDecision = { verdict: 'deny', code: 'POLICY_DENIED', ...grounds };
const ASKS = (quorum: number, groups: string[] = []): PolicyDecision => ({
  verdict: 'needs_approval',
  requirement: { tier: 'medium', quorum, groups },
  ...grounds,
});

const recorded = (step: string, decision: PolicyDecision): RecordedDecision => ({
  runId: 'run_1',
  step,
  governed: { request: aRequest({ target: step }), decision },
});

/** Each step is decided anew by its name. */
const policyOf = (decisions: Record<string, PolicyDecision>) =>
  new FakePolicy((request) => decisions[request.action.target] ?? ALLOWED);

describe('a replay', () => {
  it('lists every decision that would be another one, and no other', async () => {
    const flips = await replay(
      [
        recorded('a', DENIED),
        recorded('b', DENIED),
        recorded('c', ALLOWED),
        recorded('d', ASKS(2)),
        recorded('e', ASKS(1)),
      ],
      policyOf({ a: ALLOWED, b: DENIED, c: ASKS(1), d: ASKS(1), e: ASKS(1) }),
    );
    expect(flips).toEqual([
      expect.objectContaining({ step: 'a', from: { verdict: 'deny' }, to: { verdict: 'allow' } }),
      expect.objectContaining({
        step: 'c',
        from: { verdict: 'allow' },
        to: expect.objectContaining({ verdict: 'needs_approval' }),
      }),
      expect.objectContaining({
        step: 'd',
        from: { verdict: 'needs_approval', requirement: { tier: 'medium', quorum: 2, groups: [] } },
        to: { verdict: 'needs_approval', requirement: { tier: 'medium', quorum: 1, groups: [] } },
      }),
    ]);
  });

  it('says which write of which run it was, and why it would be otherwise', async () => {
    const flips = await replay([recorded('a', ALLOWED)], policyOf({ a: { ...DENIED, reasons: ['change freeze'] } }));
    expect(flips).toEqual([
      {
        runId: 'run_1',
        step: 'a',
        tool: 'servicenow.incident.update',
        target: 'a',
        from: { verdict: 'allow' },
        to: { verdict: 'deny' },
        reasons: ['change freeze'],
      },
    ]);
  });

  it('does not mind other reasons, another set or the order of groups', async () => {
    const again = { ...ASKS(1, ['b', 'a']), policyHash: 'new', policies: ['new'], reasons: ['new'] };
    expect(await replay([recorded('a', ASKS(1, ['a', 'b']))], policyOf({ a: again }))).toEqual([]);
  });

  it.each([
    ['deny', 'allow', true],
    ['deny', 'needs_approval', false],
    ['needs_approval', 'allow', false],
    ['allow', 'deny', false],
  ] as const)('from %s to %s opens up what was closed: %s', (from, to, opens) => {
    const requirement = { tier: 'low', quorum: 1, groups: [] } as const;
    const outcome = (verdict: PolicyDecision['verdict']) =>
      verdict === 'needs_approval' ? { verdict, requirement: { ...requirement, groups: [] } } : { verdict };
    expect(opensUp({ from: outcome(from), to: outcome(to) })).toBe(opens);
  });
});
