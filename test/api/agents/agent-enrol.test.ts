import { beforeEach, describe, expect, it } from 'vitest';
import { handleAgentEnrol } from '../../../lambdas/api/agents/agent-enrol.ts';
import { formatToken, tokenHash } from '../../../lambdas/api/agents/enrolment-token.ts';
import { agentEnrolRoutes } from '../../../lambdas/api/contract/agents.ts';
import type { HttpEvent } from '../../../lambdas/entry/http.ts';
import { byTest } from '../../fakes/by-test.ts';
import { CountingIds } from '../../fakes/counting-ids.ts';
import { FakeClock } from '../../fakes/fake-clock.ts';
import { MemoryAgentChanges } from '../../fakes/memory/memory-agent-changes.ts';
import { MemoryAgents } from '../../fakes/memory/memory-agents.ts';
import { MemoryLog } from '../../fakes/memory/memory-log.ts';
import { type Sent, SignedAgent } from './signed-agent.ts';

const MINUTE_MS = 60_000;
const SIGNING_KEY = { key_id: 'arn:aws:kms:key/1', algorithm: 'ed25519' as const, public_key: 'MCow' };

let clock: FakeClock;
let agents: MemoryAgents;
let changes: MemoryAgentChanges;
let log: MemoryLog;
let ports: Parameters<typeof handleAgentEnrol>[0];
beforeEach(() => {
  clock = new FakeClock();
  agents = new MemoryAgents();
  changes = new MemoryAgentChanges(agents);
  log = new MemoryLog();
  ports = {
    agents,
    changes,
    clock,
    log,
    ids: new CountingIds(),
    signingKeys: async () => [SIGNING_KEY],
    introductions: async () => [],
    liveUrl: undefined,
  };
});

async function newToken(tenant = 'acme', name = 'payments-1'): Promise<string> {
  const tokenId = `enr_${(await changes.tokens(tenant)).length}`;
  const token = formatToken(tenant, tokenId, 's'.repeat(43));
  const at = new Date(clock.now()).toISOString();
  await changes.createToken(
    {
      ...{
        tenant,
        tokenId,
        name,
        environments: ['prod', 'staging'],
        networkSegment: 'vpc-a',
        sha256: tokenHash(token),
      },
      ...{ createdBy: 'olivia', createdAt: at, expiresAt: new Date(clock.now() + 15 * MINUTE_MS).toISOString() },
      revision: 1,
    },
    byTest(),
  );
  return token;
}

async function send(event: HttpEvent) {
  const { statusCode, body } = await handleAgentEnrol(ports, event);
  return { status: statusCode, body: JSON.parse(body ?? '') };
}

const enrol = (agent: SignedAgent, token: string, sent?: Sent) =>
  send(agent.event(agentEnrolRoutes.enrolAgent, { token, public_key: agent.publicKey, agent_version: '0.1.0' }, sent));

const registered = (agent: SignedAgent, further: object = {}) => ({
  ...{ protocol: 1, agent_version: '0.1.0', boot_id: agent.bootId, capabilities: ['systemd'], environments: ['prod'] },
  ...{ profiles: ['prod-standard'], slots: 2, host: { platform: 'linux', arch: 'arm64', node: '24.21.0' } },
  ...further,
});
const register = (agent: SignedAgent, further?: object, sent?: Sent) =>
  send(agent.event(agentEnrolRoutes.registerAgent, registered(agent, further), sent));
const drain = (agent: SignedAgent, sent?: Sent) => send(agent.event(agentEnrolRoutes.drainSelf, {}, sent));
const unregister = (agent: SignedAgent, sent?: Sent) => send(agent.event(agentEnrolRoutes.unregisterAgent, {}, sent));

async function enrolledAgent(tenant = 'acme', name = 'payments-1'): Promise<SignedAgent> {
  const agent = new SignedAgent(clock);
  const { body } = await enrol(agent, await newToken(tenant, name));
  agent.agentId = body.agent_id;
  return agent;
}
const stored = (agent: SignedAgent) => agents.agent(agent.agentId.split('.')[0] ?? '', agent.agentId);

const refused = (status: number, code: string) => expect.objectContaining({ status, code });

describe('an agent that enrols', () => {
  it('gets what the owner granted, and the keys that sign its assignments', async () => {
    const agent = new SignedAgent(clock);
    const { status, body } = await enrol(agent, await newToken());
    expect(status).toBe(201);
    expect(body).toEqual({
      agent_id: expect.stringMatching(/^acme\.payments-1_/),
      tenant: 'acme',
      name: 'payments-1',
      environments: ['prod', 'staging'],
      network_segment: 'vpc-a',
      signing_keys: [SIGNING_KEY],
    });
    expect(await agents.agent('acme', body.agent_id)).toMatchObject({
      publicKey: agent.publicKey,
      enrolledBy: 'olivia',
    });
    expect(changes.history.map(({ kind, action }) => `${kind} ${action}`)).toEqual([
      'enrolment_token created',
      'agent created',
    ]);
  });

  it('gets the same response again if the first one was lost', async () => {
    const agent = new SignedAgent(clock);
    const token = await newToken();
    const first = await enrol(agent, token);
    expect(await enrol(agent, token)).toEqual(first);
    expect(await agents.agents('acme', { limit: 5 })).toHaveLength(1);
  });

  it('must have the private key of the key that it sends', async () => {
    const agent = new SignedAgent(clock);
    const thief = new SignedAgent(clock);
    const token = await newToken();
    await expect(enrol(agent, token, { privateKey: thief.privateKey })).rejects.toEqual(
      refused(401, 'SIGNATURE_INVALID'),
    );
    await expect(enrol(agent, token, { keyId: thief.thumbprint })).rejects.toEqual(refused(401, 'SIGNATURE_INVALID'));
    expect(await agents.agents('acme', { limit: 5 })).toEqual([]);
  });

  it('must send an Ed25519 key, and a body that the contract describes', async () => {
    const agent = new SignedAgent(clock);
    const event = (body: object) => agent.event(agentEnrolRoutes.enrolAgent, body);
    const body = { token: await newToken(), public_key: 'A'.repeat(60), agent_version: '0.1.0' };
    await expect(send(event(body))).rejects.toEqual(refused(400, 'BAD_REQUEST'));
    await expect(send(event({ colour: 1 }))).rejects.toMatchObject({ message: expect.stringContaining('colour') });
  });
});

describe('an enrolment token', () => {
  it('that was stolen and used a second time is refused, and the attempt is in the history and the log', async () => {
    const token = await newToken();
    await enrol(new SignedAgent(clock), token);
    const thief = new SignedAgent(clock);
    await expect(enrol(thief, token)).rejects.toMatchObject({
      ...{ status: 403, code: 'ENROLMENT_TOKEN_INVALID' },
      message: expect.stringMatching(/another one: countersign agents token NAME --environment ENV$/),
    });
    expect(changes.history.at(-1)).toMatchObject({
      kind: 'enrolment_token',
      action: 'changed',
      actor: `key:${thief.thumbprint}`,
      after: { reused: { keyThumbprint: thief.thumbprint, count: 1 } },
    });
    expect(log.messages('warn')).toEqual(['an enrolment token was used again']);
    expect(await agents.agents('acme', { limit: 5 })).toHaveLength(1);
  });

  it('that is tried many times fills neither the history nor its row', async () => {
    const token = await newToken();
    await enrol(new SignedAgent(clock), token);
    for (let attempt = 0; attempt < 20; attempt += 1) {
      await expect(enrol(new SignedAgent(clock), token)).rejects.toThrow();
    }
    expect(changes.history.filter(({ action }) => action === 'changed')).toHaveLength(5);
  });

  it('used by two at once enrols one', async () => {
    const token = await newToken();
    const results = await Promise.allSettled([
      enrol(new SignedAgent(clock), token),
      enrol(new SignedAgent(clock), token),
    ]);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await agents.agents('acme', { limit: 5 })).toHaveLength(1);
  });

  it('that has expired, was revoked, or is of another tenant or secret is refused', async () => {
    const expired = await newToken();
    clock.advance(15 * MINUTE_MS);
    const revoked = await newToken();
    const [, read] = await changes.tokens('acme');
    if (read) await changes.changeToken(read, { ...read, revoked: { at: read.createdAt, by: 'olivia' } }, byTest());
    const open = await newToken();
    for (const token of [
      expired,
      revoked,
      open.replace('cse_acme', 'cse_globex'),
      open.replace(/s{43}$/, 't'.repeat(43)),
      'cse_acme.enr_9.ssssssssssssssssssssss',
      'not-a-token-at-all-but-long',
    ]) {
      await expect(enrol(new SignedAgent(clock), token)).rejects.toEqual(refused(403, 'ENROLMENT_TOKEN_INVALID'));
    }
    expect((await enrol(new SignedAgent(clock), open)).status).toBe(201);
  });

  it('enrols no second agent with the name of the first', async () => {
    await enrolledAgent();
    await expect(enrol(new SignedAgent(clock), await newToken())).rejects.toEqual(refused(409, 'CONFLICT'));
  });
});

describe('a process that registers', () => {
  it('is known with what it says, and gets its intervals', async () => {
    const agent = await enrolledAgent();
    const { status, body } = await register(agent);
    expect([status, body.state, body.intervals.sync_ms]).toEqual([200, 'idle', 15_000]);
    expect(await stored(agent)).toMatchObject({
      registration: { bootId: 'boot-0001', slots: 2, profiles: ['prod-standard'] },
      requestCounter: agent.counter,
    });
  });

  it('cannot register for an environment that the owner did not grant', async () => {
    const agent = await enrolledAgent();
    await expect(register(agent, { environments: ['prod', 'dev'] })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('not for dev'),
    });
  });

  it('signs with the boot_id that it registers', async () => {
    const agent = await enrolledAgent();
    await expect(register(agent, { boot_id: 'another-boot' })).rejects.toEqual(refused(400, 'BAD_REQUEST'));
  });

  it('ends the drain of the process before, and keeps that of an operator', async () => {
    const agent = await enrolledAgent();
    await register(agent);
    await drain(agent);
    const next = agent.secondProcess('boot-0002');
    expect((await register(next)).body).toMatchObject({ state: 'idle' });
    const read = await stored(next);
    const draining = { at: '2026-07-01T00:00:00.000Z', by: 'olivia', reason: 'patches' };
    if (read) await agents.update(read, { ...read, draining });
    const last = agent.secondProcess('boot-0003');
    expect((await register(last)).body).toMatchObject({ state: 'draining' });
    expect(await stored(last)).toMatchObject({ draining });
  });

  it('gets the keys that replaced others; if they cannot be read, it is registered nevertheless', async () => {
    const agent = await enrolledAgent();
    const introduced = [{ envelope: { payload: 'x' } }];
    ports = { ...ports, introductions: async () => introduced };
    expect((await register(agent)).body).toMatchObject({ state: 'idle', new_signing_keys: introduced });
    ports = { ...ports, introductions: () => Promise.reject(new Error('KMS does not respond')) };
    expect((await register(agent)).body).toMatchObject({ state: 'idle', new_signing_keys: [] });
    expect(log.messages('warn')).toEqual(['new keys could not be introduced to an agent']);
  });

  it('replaces an earlier process, which is refused from then on', async () => {
    const first = await enrolledAgent();
    await register(first);
    const second = first.secondProcess('boot-0002');
    await register(second);
    await expect(drain(first)).rejects.toEqual(refused(409, 'AGENT_IDENTITY_IN_USE'));
    expect((await drain(second)).body).toEqual({ state: 'draining', running: 0 });
  });
});

describe('a request that is refused', () => {
  it('is sent again: a replayed drain does not undo a resume', async () => {
    const agent = await enrolledAgent();
    await register(agent);
    const event = agent.event(agentEnrolRoutes.drainSelf, {});
    await send(event);
    const read = await stored(agent);
    if (read) await agents.update(read, { ...read, draining: undefined });
    await expect(send(event)).rejects.toEqual(refused(409, 'REQUEST_REPLAYED'));
    expect((await stored(agent))?.draining).toBeUndefined();
  });

  it('is an old registration, replayed after another process has registered', async () => {
    const first = await enrolledAgent();
    const event = first.event(agentEnrolRoutes.registerAgent, registered(first));
    await send(event);
    clock.advance(5_000);
    const second = first.secondProcess('boot-0002');
    await register(second);
    await expect(send(event)).rejects.toEqual(refused(409, 'REQUEST_REPLAYED'));
    expect((await stored(first))?.registration?.bootId).toBe('boot-0002');
  });

  it('is a registration, replayed after its process has unregistered; a new process registers at once', async () => {
    const agent = await enrolledAgent();
    const event = agent.event(agentEnrolRoutes.registerAgent, registered(agent));
    await send(event);
    clock.advance(5_000);
    const second = agent.secondProcess('boot-0002');
    const newer = second.event(agentEnrolRoutes.registerAgent, registered(second));
    await send(newer);
    await send(second.event(agentEnrolRoutes.unregisterAgent, {}));
    for (const replay of [event, newer]) {
      await expect(send(replay)).rejects.toEqual(refused(409, 'REQUEST_REPLAYED'));
    }
    expect((await stored(agent))?.registration).toBeUndefined();
    await register(agent.secondProcess('boot-0003'));
    expect((await stored(agent))?.registration?.bootId).toBe('boot-0003');
  });

  it('is signed with the key of another agent, or of an agent of another tenant', async () => {
    const agent = await enrolledAgent();
    const other = await enrolledAgent('globex', 'theirs');
    await register(agent);
    await register(other);
    await expect(drain(agent, { privateKey: other.privateKey })).rejects.toEqual(refused(401, 'SIGNATURE_INVALID'));
    await expect(drain(other, { id: agent.agentId })).rejects.toEqual(refused(403, 'FORBIDDEN'));
    await expect(drain(other, { keyId: other.agentId.replace('globex', 'acme') })).rejects.toEqual(
      refused(401, 'SIGNATURE_INVALID'),
    );
    expect((await stored(agent))?.draining).toBeUndefined();
  });

  it('comes from an agent that was removed, at once', async () => {
    const agent = await enrolledAgent();
    await register(agent);
    const read = await stored(agent);
    if (read) await changes.removeAgent(read, byTest());
    await expect(drain(agent)).rejects.toEqual(refused(401, 'SIGNATURE_INVALID'));
    await expect(register(agent)).rejects.toMatchObject({
      ...{ status: 401, code: 'SIGNATURE_INVALID' },
      message: expect.stringMatching(/may have been removed; enrol it again with another --dir/),
    });
  });

  it('has a clock that is five minutes off, and gets the time of the server to correct it', async () => {
    const agent = await enrolledAgent();
    for (const skewMs of [-5 * MINUTE_MS, 5 * MINUTE_MS]) {
      await expect(register(agent, {}, { skewMs })).rejects.toMatchObject({
        status: 401,
        code: 'SIGNATURE_EXPIRED',
        fields: { server_time: new Date(clock.now()).toISOString() },
      });
    }
    expect((await register(agent)).status).toBe(200);
  });

  it('has no nonce with a process and a counter', async () => {
    const agent = await enrolledAgent();
    await expect(register(agent, {}, { nonce: 'x' })).rejects.toEqual(refused(401, 'SIGNATURE_INVALID'));
  });

  it('comes before the agent has registered', async () => {
    const agent = await enrolledAgent();
    await expect(drain(agent)).rejects.toEqual(refused(409, 'AGENT_NOT_REGISTERED'));
  });
});

describe('an agent that ends', () => {
  it('unregisters when it runs nothing, and stays enrolled', async () => {
    const agent = await enrolledAgent();
    await register(agent);
    const until = new Date(clock.now() + 30_000).toISOString();
    const running = await stored(agent);
    if (running) {
      const assignments = [{ assignmentId: 'run_1.0.1', state: 'acknowledged' as const, until }];
      await agents.update(running, { ...running, assignments });
    }
    expect((await drain(agent)).body).toEqual({ state: 'draining', running: 1 });
    await expect(unregister(agent)).rejects.toEqual(refused(409, 'CONFLICT'));
    clock.advance(31_000);
    expect((await unregister(agent)).body).toEqual({ state: 'offline', running: 0 });
    await expect(drain(agent)).rejects.toEqual(refused(409, 'AGENT_NOT_REGISTERED'));
    const restarted = agent.secondProcess('boot-0002');
    expect((await register(restarted)).status).toBe(200);
  });
});
