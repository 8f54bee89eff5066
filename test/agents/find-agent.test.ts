import { describe, expect, it } from 'vitest';
import { type Agent, newAgent, withAssignment } from '../../lambdas/agents/agent.ts';
import { AGENTS_OF_A_PAGE, findAgent } from '../../lambdas/agents/find-agent.ts';
import { type CommandNeeds, rankOf, selectAgent } from '../../lambdas/agents/select-agent.ts';
import { later } from '../../lambdas/run/lease.ts';
import { SeededRandom } from '../simulation/environment/seeded-random.ts';

const AT = '2026-03-02T10:00:00.000Z';
const NEEDS: CommandNeeds = { environment: 'dev', profile: 'dev-flex', capabilities: [] };

function agentOf(index: number, load: number, further: Partial<Agent> = {}): Agent {
  const agentId = `acme.web-${String(index).padStart(4, '0')}`;
  const agent: Agent = {
    ...newAgent({
      ...{ tenant: 'acme', agentId, name: agentId, publicKey: '', environments: ['dev'], networkSegment: null },
      ...{ enrolledAt: AT, enrolledBy: 'olivia' },
    }),
    registration: {
      ...{ bootId: 'boot-1', protocol: 1, agentVersion: '1', capabilities: [], environments: ['dev'] },
      ...{ profiles: ['dev-flex'], slots: 4, host: { platform: 'linux', arch: 'x64', node: '24' }, at: AT },
    },
    lastSyncAt: AT,
    ...further,
  };
  const holds = Array.from({ length: load }, (_, each) => `run_${index}.${each}.1`);
  return holds.reduce(
    (held, assignmentId) => withAssignment(held, { assignmentId, state: 'acknowledged', until: later(AT, 20_000) }, AT),
    agent,
  );
}

/** Counts what is read. */
function registryOf(agents: readonly Agent[]) {
  const read: string[] = [];
  let requests = 0;
  return {
    read,
    requests: () => requests,
    agents: async (_tenant: string, { after = '', limit }: { after?: string; limit: number }) => {
      requests += 1;
      const page = agents.filter(({ agentId }) => agentId > after).slice(0, limit);
      read.push(...page.map(({ agentId }) => agentId));
      return page;
    },
  };
}

describe('with 1,000 agents, a search', () => {
  it('reads one page if an idle agent is in it, and begins after the last one', async () => {
    const agents = Array.from({ length: 1_000 }, (_, index) => agentOf(index, 0));
    const registry = registryOf(agents);
    const after = agents[990]?.agentId;
    const found = await findAgent(registry, 'acme', NEEDS, {
      at: AT,
      tried: [],
      random: () => 0.5,
      ...(after && { after }),
    });
    expect([registry.requests(), registry.read.length]).toEqual([1, 9]);
    expect(found.agent && after && found.agent.agentId > after).toBe(true);
    const first = registryOf(agents);
    await findAgent(first, 'acme', NEEDS, { at: AT, tried: [], random: () => 0.5 });
    expect([first.requests(), first.read.length]).toEqual([1, AGENTS_OF_A_PAGE]);
  });

  it('finds the only one that is suitable, wherever it begins', async () => {
    const agents = Array.from({ length: 1_000 }, (_, index) => agentOf(index, 0));
    const needs = { ...NEEDS, segment: 'vpc-a' };
    for (const place of [0, 49, 50, 500, 999]) {
      const with1 = agents.map((each, index) => (index === place ? { ...each, networkSegment: 'vpc-a' } : each));
      for (const after of [undefined, agents[place]?.agentId, agents[400]?.agentId]) {
        const search = { at: AT, tried: [], random: () => 0.5, ...(after !== undefined && { after }) };
        const { agent } = await findAgent(registryOf(with1), 'acme', needs, search);
        expect(agent?.agentId).toBe(agents[place]?.agentId);
      }
    }
  });

  it('says why nobody is available after it has read all, each once', async () => {
    const agents = Array.from({ length: 120 }, (_, index) => agentOf(index, 4));
    const registry = registryOf(agents);
    const after = agents[60]?.agentId ?? '';
    const found = await findAgent(registry, 'acme', NEEDS, { at: AT, tried: [], random: () => 0.5, after });
    expect(found).toEqual({ agent: undefined, reason: '120 agents: each has no free slot' });
  });
});

it('finds an agent of the same rank as a choice among all (200 random fleets)', async () => {
  const seeded = new SeededRandom(14);
  const random = () => seeded.next();
  const below = (max: number) => Math.floor(random() * max);
  for (let fleet = 0; fleet < 200; fleet += 1) {
    const agents = Array.from({ length: below(160) }, (_, index) =>
      agentOf(index, below(5), below(4) === 0 ? { lastSyncAt: later(AT, -60_000) } : {}),
    );
    const tried = agents.filter(() => below(3) === 0).map(({ agentId }) => agentId);
    const after = agents[below(agents.length)]?.agentId;
    const search = { at: AT, tried, random, ...(after !== undefined && below(2) === 0 && { after }) };
    const { agent } = await findAgent(registryOf(agents), 'acme', NEEDS, search);
    const best = selectAgent(agents, NEEDS, search);
    expect(agent && rankOf(agent, search)).toEqual(best && rankOf(best, search));
  }
});
