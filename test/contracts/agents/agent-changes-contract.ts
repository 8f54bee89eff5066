import { expect, it } from 'vitest';
import type { AgentRegistry } from '../../../lambdas/agents/agent-registry.ts';
import type { AgentChanges } from '../../../lambdas/api/agents/agent-changes.ts';
import type { EnrolmentToken } from '../../../lambdas/api/agents/enrolment-token.ts';
import type { Change } from '../../../lambdas/pipeline/definition-changes.ts';
import { byTest } from '../../fakes/by-test.ts';
import { enrolled } from './agent-registry-contract.ts';

interface Opened {
  changes: AgentChanges;
  agents: AgentRegistry;
  history(tenant: string): Promise<Change[]>;
}

const token = (tenant: string, tokenId: string): EnrolmentToken => ({
  ...{ tenant, tokenId, name: 'payments-1', environments: ['prod'], networkSegment: 'vpc-a', sha256: 'abc' },
  ...{ createdBy: 'olivia', createdAt: '2026-03-02T10:00:00.000Z', expiresAt: '2026-03-02T10:15:00.000Z', revision: 1 },
});

/** What every store of changes of agents does. */
export function agentChangesContract(open: () => Opened): void {
  it('a token enrols one agent: the first one', async () => {
    const { changes, agents, history } = open();
    const created = token('enrolling', 'enr_1');
    await changes.createToken(created, byTest());
    expect(await changes.token('enrolling', 'enr_1')).toEqual(created);
    const first = enrolled('enrolling', 'enrolling.a_1');
    const second = enrolled('enrolling', 'enrolling.a_2');
    expect(await changes.enrol(created, first, byTest())).toBe(true);
    expect(await changes.enrol(created, second, byTest())).toBe(false);
    expect(await agents.agent('enrolling', first.agentId)).toEqual(first);
    expect(await agents.agent('enrolling', second.agentId)).toBeUndefined();
    const [used] = await changes.tokens('enrolling');
    expect(used).toMatchObject({ used: { agentId: first.agentId }, revision: 2 });
    const entries = (await history('enrolling')).map(({ kind, action }) => `${kind} ${action}`).sort();
    expect(entries).toEqual(['agent created', 'enrolment_token created']);
  });

  it('a token that was changed since it was read is neither changed again nor used', async () => {
    const { changes, agents } = open();
    const created = token('revoking', 'enr_1');
    await changes.createToken(created, byTest());
    const revoked = { ...created, revoked: { at: created.createdAt, by: 'olivia' } };
    expect(await changes.changeToken(created, revoked, byTest())).toBe(true);
    expect(await changes.changeToken(created, created, byTest())).toBe(false);
    expect(await changes.enrol(created, enrolled('revoking', 'revoking.a_1'), byTest())).toBe(false);
    expect(await agents.agents('revoking', { limit: 5 })).toEqual([]);
    expect(await changes.token('revoking', 'enr_1')).toEqual({ ...revoked, revision: 2 });
  });

  it('an agent is changed and removed only as it was read, with entries in the history', async () => {
    const { changes, agents, history } = open();
    const agent = enrolled('changing', 'changing.a_1');
    await agents.create(agent);
    const draining = { ...agent, draining: { at: agent.enrolledAt, by: 'oscar' } };
    expect(await changes.changeAgent(agent, draining, byTest())).toBe(true);
    expect(await changes.changeAgent(agent, agent, byTest())).toBe(false);
    expect(await changes.removeAgent(agent, byTest())).toBe(false);
    const read = await agents.agent('changing', agent.agentId);
    expect(read).toEqual({ ...draining, revision: 2 });
    expect(read && (await changes.removeAgent(read, byTest()))).toBe(true);
    expect(await agents.agent('changing', agent.agentId)).toBeUndefined();
    const entries = (await history('changing')).map(({ kind, action }) => `${kind} ${action}`).sort();
    expect(entries).toEqual(['agent changed', 'agent deleted']);
  });
}
