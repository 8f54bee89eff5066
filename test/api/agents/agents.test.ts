import { beforeEach, describe, expect, it } from 'vitest';
import { newAgent } from '../../../lambdas/agents/agent.ts';
import { handleAgents } from '../../../lambdas/api/agents/agents.ts';
import { agentRoutes, enrolmentTokenRoutes, profileRoutes } from '../../../lambdas/api/contract/agents.ts';
import type { RouteDefinition } from '../../../lambdas/api/contract/route.ts';
import type { Role } from '../../../lambdas/people/rights.ts';
import { CountingIds } from '../../fakes/counting-ids.ts';
import { FakeClock } from '../../fakes/fake-clock.ts';
import { MemoryAgentChanges } from '../../fakes/memory/memory-agent-changes.ts';
import { MemoryAgents } from '../../fakes/memory/memory-agents.ts';
import { MemoryDefinitions } from '../../fakes/memory/memory-definitions.ts';
import { eventFor } from '../every-route.ts';
import { SignedAgent } from './signed-agent.ts';

let clock: FakeClock;
let agents: MemoryAgents;
let changes: MemoryAgentChanges;
let ports: Parameters<typeof handleAgents>[0];
beforeEach(() => {
  clock = new FakeClock();
  agents = new MemoryAgents();
  changes = new MemoryAgentChanges(agents);
  let made = 0;
  ports = {
    agents,
    changes,
    definitions: new MemoryDefinitions(),
    cursorSecret: async () => 'secret',
    clock,
    ids: new CountingIds(),
    newSecret: () => {
      made += 1;
      return `secret${made}`.padEnd(40, 'x');
    },
  };
});

const at = () => new Date(clock.now()).toISOString();

async function ask(
  route: RouteDefinition,
  sent: { id?: string; body?: unknown; query?: Record<string, string>; role?: Role; tenant?: string } = {},
) {
  const { id = '', body, query, role = 'owner', tenant = 'acme' } = sent;
  const event = eventFor(route, { tenant, person: 'olivia', role }, { params: { id, name: id }, body });
  const { statusCode, body: text } = await handleAgents(ports, { ...event, queryStringParameters: query } as never);
  return { status: statusCode, body: JSON.parse(text ?? '') };
}

const enrolled = (name: string, tenant = 'acme') =>
  newAgent({
    tenant,
    agentId: `${tenant}.${name}_1`,
    name,
    publicKey: new SignedAgent(clock).publicKey,
    environments: ['prod'],
    networkSegment: 'vpc-a',
    enrolledAt: at(),
    enrolledBy: 'olivia',
  });

const registration = (slots = 2) => ({
  ...{ bootId: 'boot-0001', protocol: 1 as const, agentVersion: '0.1.0', capabilities: ['systemd'] },
  ...{ environments: ['prod' as const], profiles: ['prod-standard' as const], slots, at: at() },
  host: { platform: 'linux', arch: 'arm64', node: '24.21.0' },
});

describe('the list of agents', () => {
  it('is paged and shows state, capabilities, profiles, commands, last sync and version', async () => {
    await agents.create(enrolled('a'));
    const working = {
      ...enrolled('b'),
      registration: registration(),
      lastSyncAt: at(),
      assignments: [
        { assignmentId: 'run_1.3.2', state: 'acknowledged' as const, until: '2027-01-01T00:00:00.000Z' },
        { assignmentId: 'run_2.0.1', state: 'acknowledged' as const, until: '2025-01-01T00:00:00.000Z' },
      ],
    };
    await agents.create(working);
    await agents.create(enrolled('c', 'globex'));
    const first = await ask(agentRoutes.listAgents, { query: { limit: '1' }, role: 'member' });
    expect(first.body.agents).toMatchObject([{ name: 'a', state: 'offline', process: null, lastSyncAt: null }]);
    const second = await ask(agentRoutes.listAgents, { query: { limit: '1', cursor: first.body.nextCursor } });
    expect(second.body).toEqual({
      agents: [
        expect.objectContaining({
          name: 'b',
          state: 'executing',
          lastSyncAt: at(),
          process: expect.objectContaining({
            version: '0.1.0',
            capabilities: ['systemd'],
            profiles: ['prod-standard'],
            slots: 2,
            freeSlots: 1,
          }),
          commands: [
            expect.objectContaining({ runId: 'run_1', stepIndex: 3, state: 'acknowledged', assignmentId: 'run_1.3.2' }),
          ],
        }),
      ],
      nextCursor: null,
    });
  });

  it('shows when the process of an agent stopped, until another one registers', async () => {
    const unregistered = { bootId: 'boot-0001', at: at() };
    await agents.create({ ...enrolled('a'), unregistered });
    await agents.create({ ...enrolled('b'), registration: registration(), lastSyncAt: at() });
    const { body } = await ask(agentRoutes.listAgents, {});
    expect(body.agents).toMatchObject([
      { name: 'a', state: 'offline', lastSyncAt: null, stoppedAt: at() },
      { name: 'b', state: 'idle', lastSyncAt: at(), stoppedAt: null },
    ]);
  });

  it('has each agent by id and by name, and nothing of another tenant', async () => {
    await agents.create(enrolled('payments'));
    for (const id of ['payments', 'acme.payments_1']) {
      expect((await ask(agentRoutes.getAgent, { id })).body).toMatchObject({
        name: 'payments',
        environments: ['prod'],
      });
      await expect(ask(agentRoutes.getAgent, { id, tenant: 'globex' })).rejects.toMatchObject({ status: 404 });
    }
    await expect(ask(agentRoutes.getAgent, { id: 'payment' })).rejects.toMatchObject({
      message: 'there is no agent payment; did you mean "payments"?',
    });
    await expect(ask(agentRoutes.getAgent, { id: 'other' })).rejects.toMatchObject({
      message: 'there is no agent other; countersign agents list shows all',
    });
  });
});

describe('an operator', () => {
  it('drains an agent and lets it resume, and each change is in the history once', async () => {
    await agents.create({ ...enrolled('a'), registration: registration(), lastSyncAt: at() });
    const drain = () => ask(agentRoutes.drainAgent, { id: 'a', body: { reason: 'maintenance' }, role: 'operator' });
    expect((await drain()).body).toMatchObject({
      state: 'draining',
      draining: { by: 'olivia', reason: 'maintenance' },
    });
    await drain();
    expect((await ask(agentRoutes.resumeAgent, { id: 'a', role: 'operator' })).body).toMatchObject({
      state: 'idle',
      draining: null,
    });
    expect(changes.history.map(({ kind, name, action, actor }) => [kind, name, action, actor])).toEqual([
      ['agent', 'a', 'changed', 'olivia'],
      ['agent', 'a', 'changed', 'olivia'],
    ]);
  });

  it('drains an agent that is about to stop: its next process gets nothing, either', async () => {
    await agents.create({ ...enrolled('a'), draining: { at: at(), by: 'acme.a_1', reason: 'SIGTERM' } });
    const { body } = await ask(agentRoutes.drainAgent, { id: 'a', body: { reason: 'patches' }, role: 'operator' });
    expect(body).toMatchObject({ draining: { by: 'olivia', reason: 'patches' } });
  });

  it('drains an agent that syncs at the same time', async () => {
    await agents.create(enrolled('a'));
    const { changeAgent } = changes;
    let raced = false;
    changes.changeAgent = async (read, agent, by) => {
      if (!raced) await agents.update(read, { ...read, lastSyncAt: at() });
      raced = true;
      return changeAgent.call(changes, read, agent, by);
    };
    await ask(agentRoutes.drainAgent, { id: 'a', body: {} });
    expect(await agents.agent('acme', 'acme.a_1')).toMatchObject({ draining: { by: 'olivia' }, lastSyncAt: at() });
  });

  it('may not remove an agent; an admin may, and sees how many commands are lost with it', async () => {
    const until = '2027-01-01T00:00:00.000Z';
    await agents.create({
      ...enrolled('a'),
      assignments: [{ assignmentId: 'run_1.3.2', state: 'acknowledged', until }],
    });
    await expect(ask(agentRoutes.removeAgent, { id: 'a', role: 'operator' })).rejects.toMatchObject({ status: 403 });
    expect((await ask(agentRoutes.removeAgent, { id: 'a', role: 'admin' })).body).toEqual({ removed: 'a', running: 1 });
    expect(await agents.agent('acme', 'acme.a_1')).toBeUndefined();
    expect(changes.history).toMatchObject([{ kind: 'agent', name: 'a', action: 'deleted' }]);
  });
});

describe('an enrolment token', () => {
  const body = { name: 'payments-1', environments: ['prod'], networkSegment: 'vpc-a' };
  const create = (further: object = {}) =>
    ask(enrolmentTokenRoutes.createEnrolmentToken, { body: { ...body, ...further } });

  it('is shown once, stored by its hash and bound to name, environments and segment', async () => {
    const { status, body: created } = await create();
    expect(status).toBe(201);
    expect(created).toMatchObject({ ...body, state: 'open', createdBy: 'olivia', agentId: null });
    expect(created.token).toMatch(/^cse_acme\.enr[\w-]+\.secret1x+$/);
    expect(Date.parse(created.expiresAt) - clock.now()).toBe(15 * 60_000);
    const stored = JSON.stringify([await changes.tokens('acme'), changes.history]);
    expect(stored).not.toContain('secret1');
    const { body: listed } = await ask(enrolmentTokenRoutes.listEnrolmentTokens);
    expect(listed.enrolmentTokens).toEqual([{ ...created, token: undefined }].map(({ token: _, ...rest }) => rest));
  });

  it('is valid for at most a day', async () => {
    await expect(create({ minutes: 24 * 60 + 1 })).rejects.toMatchObject({ status: 400 });
    expect((await create({ minutes: 24 * 60 })).status).toBe(201);
  });

  it('is for people: a machine may not create one, nor may an operator', async () => {
    const event = eventFor(
      enrolmentTokenRoutes.createEnrolmentToken,
      { tenant: 'acme', person: 'machine:ci@olivia', role: 'owner', machine: true },
      { body },
    );
    await expect(handleAgents(ports, event)).rejects.toMatchObject({ status: 403 });
    await expect(ask(enrolmentTokenRoutes.createEnrolmentToken, { body, role: 'operator' })).rejects.toMatchObject({
      status: 403,
    });
  });

  it('is refused for the name of an agent that exists', async () => {
    await agents.create(enrolled('payments-1'));
    await expect(create()).rejects.toMatchObject({ status: 409, message: expect.stringContaining('payments-1') });
  });

  it('can be revoked until it is used', async () => {
    const { body: created } = await create();
    const revoke = () => ask(enrolmentTokenRoutes.revokeEnrolmentToken, { id: created.tokenId });
    expect((await revoke()).body.state).toBe('revoked');
    expect((await revoke()).body.state).toBe('revoked');
    expect(changes.history.map(({ action }) => action)).toEqual(['created', 'changed']);
    await expect(
      ask(enrolmentTokenRoutes.revokeEnrolmentToken, { id: created.tokenId, tenant: 'globex' }),
    ).rejects.toMatchObject({ status: 404 });
  });
});

describe('profiles', () => {
  it('allow nothing in prod and staging until the tenant defines lists', async () => {
    const { body } = await ask(profileRoutes.listProfiles, { role: 'auditor' });
    expect(body.profiles.map(({ name, allow, builtIn }: Record<string, unknown>) => [name, allow, builtIn])).toEqual([
      ['prod-critical', [], true],
      ['prod-standard', [], true],
      ['staging-standard', [], true],
      ['dev-flex', null, true],
    ]);
  });

  it('are replaced by an admin, and say so', async () => {
    const allow = [{ executable: '/usr/bin/systemctl', args: ['restart', 'payments-*'] }];
    const save = (id: string, body: object, role: Role = 'admin') => ask(profileRoutes.saveProfile, { id, body, role });
    expect((await save('prod-standard', { allow })).body).toMatchObject({
      allow,
      builtIn: false,
      effectiveWithinSeconds: 60,
    });
    expect((await ask(profileRoutes.getProfile, { id: 'prod-standard' })).body).toMatchObject({ allow, deny: [] });
    await expect(save('prod-standard', { allow }, 'operator')).rejects.toMatchObject({ status: 403 });
    await expect(save('prod-standard', { name: 'dev-flex' })).rejects.toMatchObject({ status: 400 });
    await expect(save('dev-flex', { allow })).rejects.toMatchObject({ status: 400 });
    await expect(save('prod-standard', { allow: [{ executable: '/usr/../bin/sh' }] })).rejects.toMatchObject({
      status: 400,
    });
    await expect(ask(profileRoutes.getProfile, { id: 'prod' })).rejects.toMatchObject({ status: 400 });
  });
});
