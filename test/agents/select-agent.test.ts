import { describe, expect, it } from 'vitest';
import { type Agent, newAgent, type Registration, stateOf, withAssignment } from '../../lambdas/agents/agent.ts';
import { type CommandNeeds, selectAgent, whyNobody, whyUnavailable } from '../../lambdas/agents/select-agent.ts';
import { later } from '../../lambdas/run/lease.ts';

const AT = '2026-03-02T10:00:00.000Z';
const ago = (seconds: number) => later(AT, -seconds * 1000);
const NEEDS: CommandNeeds = { environment: 'staging', profile: 'staging-standard', capabilities: [] };

const REGISTRATION: Registration = {
  ...{ bootId: 'boot-1', protocol: 1, agentVersion: '1', capabilities: ['database', 'ssh'], environments: ['staging'] },
  ...{ profiles: ['staging-standard'], slots: 2, host: { platform: 'linux', arch: 'x64', node: '24' }, at: ago(600) },
};

const agent = (name: string, differing: Partial<Agent> = {}): Agent => ({
  ...newAgent({
    ...{ tenant: 'acme', agentId: `agt_${name}`, name, publicKey: '', environments: ['staging', 'dev'] },
    ...{ networkSegment: 'vpc-a', enrolledAt: ago(9_000), enrolledBy: 'olivia' },
  }),
  registration: REGISTRATION,
  lastSyncAt: ago(5),
  ...differing,
});
const holding = (name: string, ...ids: string[]): Agent =>
  ids.reduce(
    (busy, assignmentId) => withAssignment(busy, { assignmentId, state: 'acknowledged', until: later(AT, 20_000) }, AT),
    agent(name),
  );
const select = (agents: Agent[], needs: Partial<CommandNeeds> = {}, tried: string[] = [], random = () => 0.5) =>
  selectAgent(agents, { ...NEEDS, ...needs }, { at: AT, tried, random })?.name;

describe('an assignment goes only to an agent that', () => {
  const cases: [string, Partial<Agent>, Partial<CommandNeeds>, string][] = [
    ['is registered', { registration: undefined }, {}, 'is not registered'],
    ['works in the environment', {}, { environment: 'prod' }, 'does not work in prod'],
    [
      'the owner enrolled for the environment',
      { environments: ['dev'], registration: { ...REGISTRATION, environments: ['staging'] } },
      {},
      'does not work in staging',
    ],
    ['is in the network segment', {}, { segment: 'vpc-b' }, 'is not in the network segment vpc-b'],
    ['provides the profile', {}, { profile: 'dev-flex' }, 'does not provide the profile dev-flex'],
    ['has every capability', {}, { capabilities: ['ssh', 'kubectl'] }, 'does not have kubectl'],
    ['synced within 45 s', { lastSyncAt: ago(46) }, {}, 'is offline'],
    ['has no problem', { errored: { at: ago(5), reason: 'disk full' } }, {}, 'had a problem in the last minute'],
    ['had no problem for 60 s', { erroredAt: ago(59) }, {}, 'had a problem in the last minute'],
    ['was not offline in the last 60 s', { backOnlineAt: ago(59) }, {}, 'was offline in the last minute'],
    ['is not draining', { draining: { at: ago(5), by: 'oscar' } }, {}, 'is draining'],
    ['has a free slot', holding('busy', 'a', 'b'), {}, 'has no free slot'],
  ];
  it.each(cases)('%s', (_what, differing, needs, why) => {
    const unfit = agent('unfit', differing);
    expect(whyUnavailable(unfit, { ...NEEDS, ...needs }, AT)).toBe(why);
    expect(select([unfit], needs)).toBeUndefined();
  });

  it('and is selected as soon as the problem is 60 s old', () => {
    expect(select([agent('a', { erroredAt: ago(60), backOnlineAt: ago(60) })])).toBe('a');
    expect(select([agent('a')], { segment: 'vpc-a', capabilities: ['ssh', 'database'] })).toBe('a');
  });
});

describe('of several agents', () => {
  it('the one with the least load is selected, measured by its slots', () => {
    const large = { ...holding('large', 'a'), registration: { ...REGISTRATION, slots: 8 } };
    expect(select([holding('small', 'b'), large])).toBe('large');
    expect(select([holding('small', 'b'), large, agent('idle')])).toBe('idle');
  });

  it('one that was not tried for this step is preferred, even if it has more load', () => {
    expect(select([agent('a'), holding('b', 'x')], {}, ['agt_a'])).toBe('b');
    expect(select([agent('a')], {}, ['agt_a'])).toBe('a');
  });

  it('chance decides between equals, and each of them gets work', () => {
    const seen = new Set<string | undefined>();
    for (const random of [0.1, 0.9]) {
      const draws = [random, 0.5];
      seen.add(select([agent('a'), agent('b')], {}, [], () => draws.shift() ?? 0));
    }
    expect(seen).toEqual(new Set(['a', 'b']));
  });

  it('none is available: the reason says what each one lacks', () => {
    const agents = [agent('a', { lastSyncAt: ago(100) }), agent('b', { draining: { at: AT, by: 'x' } })];
    expect(whyNobody(agents, NEEDS, AT)).toBe('a is offline; b is draining');
    expect(whyNobody([], NEEDS, AT)).toContain('enrol one');
    const many = Array.from({ length: 9 }, (_, n) => agent(`n${n}`, { lastSyncAt: undefined }));
    expect(whyNobody(many, NEEDS, AT)).toBe('9 agents: each is offline');
  });
});

describe('a slot', () => {
  it('that nobody renews becomes free by itself', () => {
    const busy = { ...holding('busy', 'a', 'b'), lastSyncAt: later(AT, 15_000) };
    expect(select([busy])).toBeUndefined();
    expect(whyUnavailable(busy, NEEDS, later(AT, 20_000))).toBeUndefined();
  });

  it('shows in the state: idle, assigned, executing; then draining, errored and offline', () => {
    const offered = withAssignment(agent('a'), { assignmentId: 'x', state: 'offered', until: later(AT, 9_000) }, AT);
    expect([agent('a'), offered, holding('a', 'x')].map((each) => stateOf(each, AT))).toEqual([
      'idle',
      'assigned',
      'executing',
    ]);
    const draining = { ...holding('a', 'x'), draining: { at: AT, by: 'oscar' } };
    expect(stateOf(draining, AT)).toBe('draining');
    expect(stateOf({ ...draining, errored: { at: AT, reason: 'x' } }, AT)).toBe('errored');
    expect(stateOf({ ...draining, lastSyncAt: ago(50) }, AT)).toBe('offline');
  });
});
