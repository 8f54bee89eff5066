import { describe, expect, it } from 'vitest';
import type { Risk } from '../../lambdas/connectors/connector.ts';
import { CedarPolicies } from '../../lambdas/policy/cedar-policies.ts';
import { CedarRuntime, loadCedar } from '../../lambdas/policy/cedar-runtime.ts';
import type { PolicyDecision, PolicyRequest } from '../../lambdas/policy/policy.ts';
import { type RecordedDecision, replay } from '../../lambdas/policy/replay.ts';
import { readShippedPolicies } from '../../lambdas/policy/shipped-policies.ts';
import { ALLOWED, FakePolicy } from '../fakes/fake-policy.ts';
import { aRequest } from './requests.ts';

const grounds = { policyHash: 'old', policies: ['old'], reasons: ['old'] };
const DENIED: PolicyDecision = { verdict: 'deny', code: 'POLICY_DENIED', ...grounds };
const ASKS = (quorum: number, groups: string[][] = []): PolicyDecision => ({
  verdict: 'needs_approval',
  requirement: { tier: 'medium', quorum, groups },
  ...grounds,
});

const recorded = (step: string, decision: PolicyDecision): RecordedDecision => ({
  runId: 'run_1',
  step,
  governed: { request: aRequest({ target: step }), decision },
  at: '2026-01-07T12:00:00.000Z',
});

/** Decides each step again by its name. */
const policyOf = (decisions: Record<string, PolicyDecision>) =>
  new FakePolicy((request) => decisions[request.action.target] ?? ALLOWED);

describe('a replay', () => {
  it('lists exactly the decisions that would change', async () => {
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

  it('names the run, the write and the reasons', async () => {
    const flips = await replay([recorded('a', ALLOWED)], policyOf({ a: { ...DENIED, reasons: ['change freeze'] } }));
    expect(flips).toEqual([
      {
        runId: 'run_1',
        step: 'a',
        tool: 'servicenow.incident.update',
        target: 'a',
        from: { verdict: 'allow' },
        to: { verdict: 'deny' },
        loosens: false,
        reasons: ['change freeze'],
      },
    ]);
  });

  it('ignores reasons, the policy hash and the order of groups', async () => {
    const again = { ...ASKS(1, [['c'], ['b', 'a']]), policyHash: 'new', policies: ['new'], reasons: ['new'] };
    expect(await replay([recorded('a', ASKS(1, [['a', 'b'], ['c']]))], policyOf({ a: again }))).toEqual([]);
  });

  const ALLOWS: PolicyDecision = { verdict: 'allow', ...grounds };
  const asks = (tier: Risk, quorum: number, ...groups: string[][]): PolicyDecision => ({
    verdict: 'needs_approval',
    requirement: { tier, quorum, groups },
    ...grounds,
  });

  it.each([
    ['what was denied is allowed', DENIED, ALLOWS],
    ['what was denied may be approved', DENIED, asks('high', 2)],
    ['nobody has to agree any more', asks('low', 1), ALLOWS],
    ['fewer people have to agree', asks('medium', 2), asks('medium', 1)],
    ['people of a lower tier may agree', asks('high', 1), asks('medium', 1)],
    ['people of any group may agree', asks('low', 1, ['sre']), asks('low', 1)],
    ['people of one more group may agree', asks('low', 1, ['sre']), asks('low', 1, ['dba', 'sre'])],
    ['one of two sets of groups is left out', asks('low', 1, ['sre'], ['security']), asks('low', 1, ['sre'])],
    ['fewer people have to agree, of a higher tier', asks('medium', 2), asks('high', 1)],
  ])('loosens if %s', async (_, from, to) => {
    expect(await replay([recorded('a', from)], policyOf({ a: to }))).toMatchObject([{ loosens: true }]);
  });

  it.each([
    ['what was allowed is denied', ALLOWS, DENIED],
    ['people have to agree', ALLOWS, asks('low', 1)],
    ['what people could agree to is denied', asks('high', 2, ['sre']), DENIED],
    ['more people have to agree', asks('medium', 1), asks('medium', 2)],
    ['fewer groups may agree', asks('low', 1, ['dba', 'sre']), asks('low', 1, ['sre'])],
    ['they must be of a second group too', asks('low', 1, ['sre']), asks('low', 1, ['sre'], ['security'])],
  ])('does not loosen if %s', async (_, from, to) => {
    expect(await replay([recorded('a', from)], policyOf({ a: to }))).toMatchObject([{ loosens: false }]);
  });

  it('finds a long value that earlier policies did not see', async () => {
    const shipped = readShippedPolicies();
    const engine = new CedarPolicies(new CedarRuntime(loadCedar, () => shipped.schema), () => shipped);
    const forbid = `forbid (principal, action, resource) when { context.normalizedValues.contains("state=7") };`;
    const set = await engine.prepare({ engine: 'cedar', files: { 'tenant.cedar': forbid } });
    const request = aRequest({ fields: { state: `7${' '.repeat(300)}` } });
    const governed = { request, decision: ALLOWED };
    const flips = await replay([{ runId: 'run_1', step: 'a', governed, at: '2026-01-07T12:00:00.000Z' }], {
      decide: async (asked) => set.decide(asked),
    });
    expect(flips).toMatchObject([{ step: 'a', from: { verdict: 'allow' }, to: { verdict: 'deny' }, loosens: false }]);
  });

  describe('of a weekend freeze', () => {
    const SATURDAY = '2026-01-10T12:00:00.000Z';
    const WEDNESDAY = '2026-01-07T12:00:00.000Z';
    const flipsOf = async (request: PolicyRequest, at: string) => {
      const shipped = readShippedPolicies();
      const engine = new CedarPolicies(new CedarRuntime(loadCedar, () => shipped.schema), () => shipped);
      const freeze = 'forbid (principal, action, resource) when { context.now.weekday == Weekday::"saturday" };';
      const set = await engine.prepare({ engine: 'cedar', files: { 'freeze.cedar': freeze } });
      const governed = { request, decision: ALLOWED };
      return replay([{ runId: 'run_1', step: 'a', governed, at }], { decide: async (asked) => set.decide(asked) });
    };

    it('decides a recorded request at its recorded time', async () => {
      expect(await flipsOf(aRequest({}, { at: SATURDAY }), WEDNESDAY)).toMatchObject([{ to: { verdict: 'deny' } }]);
      expect(await flipsOf(aRequest({}, { at: WEDNESDAY }), SATURDAY)).toEqual([]);
    });

    it('decides a request of version 0.1, which has no time, no trigger and no values, at the time of its step', async () => {
      const { at: _at, trigger: _trigger, ...old } = aRequest();
      expect(await flipsOf(old, WEDNESDAY)).toEqual([]);
      expect(await flipsOf(old, SATURDAY)).toMatchObject([{ to: { verdict: 'deny' } }]);
    });
  });
});
