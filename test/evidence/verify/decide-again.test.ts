import { expect, it } from 'vitest';
import { decideAgain } from '../../../lambdas/policy/decide-again.ts';
import type { PolicyDecision } from '../../../lambdas/policy/policy.ts';
import type { PreparedPolicies } from '../../../lambdas/policy/policy-engine.ts';
import { fieldDigests } from '../../../lambdas/run/digest.ts';
import { aRequest } from '../../policy/requests.ts';

const HASH = 'a'.repeat(64);
const SALT = 'salt_1';
const { action, ...request } = aRequest();
const VALUES = { tenant: 'acme', runId: 'r', run: { salt: SALT }, steps: [{ index: 0, action, request }] };
const GROUNDS = { policyHash: HASH, policies: ['p'], reasons: [] };
const TERMS = { tier: 'high' as const, quorum: 2, groups: [['sre', 'net']] };

const bundle = (change: object = {}) => {
  const { tool, target, fields, risk, effect } = action;
  const facts = { step: 'a', index: 0, tool, target, action: { risk, effect }, fields: fieldDigests(SALT, fields) };
  const event = { type: 'policy.decided', ...facts, verdict: 'needs_approval', ...GROUNDS, ...TERMS, ...change };
  return { commits: [{ seq: 1, prevHash: '', at: '', hash: '', events: [event] }] };
};

const decides = (decision: PolicyDecision) => async () => ({ decide: () => decision }) as unknown as PreparedPolicies;
const same = decides({ verdict: 'needs_approval', requirement: TERMS, ...GROUNDS });

it('a decision that the policies make again is the same', async () => {
  expect(await decideAgain(bundle(), VALUES, same)).toEqual({ same: ['a'], different: [], notCheckable: [] });
});

it.each([
  [{ verdict: 'allow', tier: undefined, quorum: undefined, groups: undefined }, 'verdict was "allow"'],
  [{ quorum: 1 }, 'quorum was 1; the policies of that time decide 2'],
  [{ tier: 'low' }, 'tier was "low"'],
  [{ groups: [['sre']] }, 'groups was [["sre"]]'],
  [{ policies: ['other'] }, 'policies was ["other"]'],
  [{ target: 'elsewhere' }, 'not the one on which policy decided'],
  [{ action: { risk: 'none' } }, 'not the one on which policy decided'],
  [{ fields: {} }, 'not the one on which policy decided'],
])('a decision recorded with %j is different', async (change, problem) => {
  const { different, same: equal } = await decideAgain(bundle(change), VALUES, same);
  expect([different, equal]).toEqual([[{ step: 'a', problem: expect.stringContaining(problem) }], []]);
});

it('says why a decision cannot be made again', async () => {
  const reasonOf = async (...args: Parameters<typeof decideAgain>) =>
    (await decideAgain(...args)).notCheckable[0]?.reason;
  expect(await reasonOf(bundle(), VALUES, async () => undefined)).toBe(`there is no text ${HASH}`);
  expect(await reasonOf(bundle(), { ...VALUES, steps: [] }, same)).toBe('its request is not in the values');
  expect(await reasonOf(bundle({ message: { sha256: '' } }), VALUES, same)).toBe('policy could not decide');
  expect(await reasonOf(bundle({ fields: undefined }), VALUES, same)).toContain('an earlier version');
});
