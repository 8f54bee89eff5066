import { expect, it } from 'vitest';
import { type Agent, newAgent, withAssignment } from '../../../lambdas/agents/agent.ts';
import { type AgentRegistry, allAgents } from '../../../lambdas/agents/agent-registry.ts';
import { ASSIGNMENT_SCHEMA_VERSION, type Assignment, assignmentIdOf } from '../../../lambdas/agents/assignment.ts';

const AT = '2026-03-02T10:00:00.000Z';
const UNTIL = '2026-03-02T10:00:30.000Z';

export const enrolled = (tenant: string, agentId: string, differing: Partial<Agent> = {}): Agent => ({
  ...newAgent({
    ...{ tenant, agentId, name: agentId, publicKey: 'MCowBQYDK2VwAyEA', environments: ['dev'], networkSegment: null },
    ...{ enrolledAt: AT, enrolledBy: 'olivia' },
  }),
  ...differing,
});

export const offered = (tenant: string, agentId: string, differing: Partial<Assignment> = {}): Assignment => {
  const place = { runId: 'run_1', stepIndex: 2, leaseVersion: 1, ...differing };
  return {
    schemaVersion: ASSIGNMENT_SCHEMA_VERSION,
    ...{ tenant, agentId, agentName: agentId, assignmentId: assignmentIdOf(place), stepId: 'restart' },
    ...{ status: 'offered', revision: 1, idempotencyKey: 'agent:key', environment: 'dev', profile: 'dev-flex' },
    ...{ credentials: [], envelope: { payload: 'e30=' }, statementHash: 'abc', offeredAt: AT, acknowledgeBy: UNTIL },
    ...place,
  };
};

/** What every registry of agents does. */
export function agentRegistryContract(open: () => AgentRegistry): void {
  it('an agent is created once, and one of two writers changes it', async () => {
    const registry = open();
    const agent = enrolled('registry1', 'agt_a');
    expect(await registry.create(agent)).toBe(true);
    expect(await registry.create(agent)).toBe(false);
    expect(await registry.update(agent, { ...agent, lastSyncAt: AT })).toBe(true);
    expect(await registry.update(agent, { ...agent, lastSyncAt: UNTIL })).toBe(false);
    const changed = await registry.agent('registry1', 'agt_a');
    expect(changed).toEqual({ ...agent, lastSyncAt: AT, revision: 2 });
    expect(await registry.delete(agent)).toBe(false);
    expect(changed && (await registry.delete(changed))).toBe(true);
    expect(await registry.agent('registry1', 'agt_a')).toBeUndefined();
    expect(await registry.update(agent, agent)).toBe(false);
  });

  it('agents are listed by id, page by page, and only those of the tenant', async () => {
    const registry = open();
    for (const agentId of ['agt_c', 'agt_a', 'agt_b']) await registry.create(enrolled('registry2', agentId));
    await registry.create(enrolled('registry2other', 'agt_x'));
    const ids = async (page: { after?: string; limit: number }) =>
      (await registry.agents('registry2', page)).map(({ agentId }) => agentId);
    expect(await ids({ limit: 2 })).toEqual(['agt_a', 'agt_b']);
    expect(await ids({ after: 'agt_b', limit: 2 })).toEqual(['agt_c']);
    expect((await allAgents(registry, 'registry2')).length).toBe(3);
  });

  it('an offer stores the assignment and takes the slot, or does neither', async () => {
    const registry = open();
    const agent = enrolled('registry3', 'agt_a');
    await registry.create(agent);
    const assignment = offered('registry3', 'agt_a');
    const { assignmentId } = assignment;
    const taken = withAssignment(agent, { assignmentId, state: 'offered', until: UNTIL }, AT);
    expect(await registry.offer(assignment, agent, taken)).toBe(true);
    const now = await registry.agent('registry3', 'agt_a');
    expect(now).toEqual({ ...taken, revision: 2 });
    expect(await registry.assignment('registry3', assignment)).toEqual(assignment);
    const other = offered('registry3', 'agt_a', { stepIndex: 3 });
    expect(await registry.offer(other, agent, taken)).toBe(false);
    expect(await registry.assignment('registry3', other)).toBeUndefined();
    expect(now && (await registry.offer({ ...assignment, statementHash: 'other' }, now, now))).toBe(false);
    // The same offer again, because its response was lost.
    expect(await registry.offer(assignment, agent, taken)).toBe(true);
    expect((await registry.agent('registry3', 'agt_a'))?.revision).toBe(2);
  });
}
