import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { newAgent } from '../../../lambdas/agents/agent.ts';
import { outputKey } from '../../../lambdas/agents/output-object.ts';
import type { AssignmentStatement } from '../../../lambdas/agents/protocol.ts';
import { handleAgentEnrol } from '../../../lambdas/api/agents/agent-enrol.ts';
import { type AgentWorkPorts, handleAgentWork } from '../../../lambdas/api/agents/agent-work.ts';
import { agentEnrolRoutes, agentWorkRoutes } from '../../../lambdas/api/contract/agents.ts';
import type { RouteDefinition } from '../../../lambdas/api/contract/route.ts';
import { isoNow } from '../../../lambdas/entry/ports.ts';
import { CountingIds } from '../../fakes/counting-ids.ts';
import { MemoryAgentChanges } from '../../fakes/memory/memory-agent-changes.ts';
import { MemoryOutput, MemoryOutputArchive } from '../../fakes/memory/memory-output.ts';
import { MemoryTelemetry } from '../../fakes/memory/memory-telemetry.ts';
import { AgentWorkshop, RESTART } from '../../worker/agent/agent-workshop.ts';
import { type Sent, SignedAgent } from './signed-agent.ts';

const WORKFLOW = `
name: restart
steps:
  - { id: restart, tool: agent.command, with: { command: ${RESTART}, args: [restart, web], environment: dev, credentials: [db] } }
`;
const MINUTE_MS = 60_000;

let shop: AgentWorkshop;
let output: MemoryOutput;
let archive: MemoryOutputArchive;
let telemetry: MemoryTelemetry;
let ports: AgentWorkPorts;
let agent: SignedAgent;
/** The next call to a port with this name fails, as if the function had crashed. */
let failing: string | undefined;

beforeEach(async () => {
  shop = new AgentWorkshop();
  await shop.openWithAgents();
  failing = undefined;
  output = new MemoryOutput(async (name, call) => {
    if (name !== failing) return call();
    failing = undefined;
    throw new Error('the function crashed');
  });
  archive = new MemoryOutputArchive();
  telemetry = new MemoryTelemetry(shop.clock);
  ports = { ...shop.worker, agents: shop.runs.agents, output, archive, telemetry };
  agent = await enrolled('one');
});

async function enrolled(name: string, tenant = 'acme'): Promise<SignedAgent> {
  const signed = new SignedAgent(shop.clock, `boot-${name}-1`);
  signed.agentId = `${tenant}.${name}_1`;
  await shop.runs.agents.create(
    newAgent({
      ...{ tenant, agentId: signed.agentId, name, publicKey: signed.publicKey, environments: ['dev'] },
      ...{ networkSegment: null, enrolledAt: isoNow(shop.clock), enrolledBy: 'olivia' },
    }),
  );
  await register(signed);
  return signed;
}

async function register(signed: SignedAgent): Promise<void> {
  const body = {
    ...{ protocol: 1, agent_version: '1.0.0', boot_id: signed.bootId, capabilities: [], environments: ['dev'] },
    ...{ profiles: ['dev-flex'], slots: 2, host: { platform: 'linux', arch: 'x64', node: '24' } },
  };
  const changes = new MemoryAgentChanges(shop.runs.agents);
  const enroller = {
    ...ports,
    changes,
    ids: new CountingIds(),
    signingKeys: async () => [],
    introductions: async () => [],
    liveUrl: undefined,
  };
  await handleAgentEnrol(enroller, signed.event(agentEnrolRoutes.registerAgent, body));
}

async function send(route: RouteDefinition, body: unknown, by = agent, sent: Sent = {}) {
  const { statusCode, body: text } = await handleAgentWork(ports, by.event(route, body, sent));
  return { status: statusCode, body: JSON.parse(text ?? '') };
}

const sync = async (running: AssignmentStatement[] = [], by = agent, sent: Sent = {}, further: object = {}) => {
  const ran = running.map(({ assignment_id, lease_version }) => ({ assignment_id, lease_version }));
  const body = { boot_id: by.bootId, running: ran, socket: false, violations: [], ...further };
  return (await send(agentWorkRoutes.syncAgent, body, by, sent)).body;
};

async function offer(by = agent): Promise<AssignmentStatement> {
  const { assignments } = await sync([], by);
  return shop.verified(assignments[0]?.envelope);
}
const named = ({ assignment_id, lease_version }: AssignmentStatement) => ({ assignment_id, lease_version });
const ack = async (of: AssignmentStatement, by = agent, sent: Sent = {}) =>
  (await send(agentWorkRoutes.acknowledgeAssignment, { ...named(of), accepted: true }, by, sent)).body;

const chunk = (stream_seq: number, data: string) => ({
  ...{ stream_seq, chunk_type: 'stdout', at: isoNow(shop.clock), data },
});
const write = async (of: AssignmentStatement, chunks: object[], by = agent, sent: Sent = {}) =>
  (await send(agentWorkRoutes.appendOutput, { ...named(of), chunks }, by, sent)).body;

const result = (of: AssignmentStatement, further: object = {}) => ({
  ...named(of),
  ...{ idempotency_key: of.idempotency_key, status: 'succeeded', exit_code: 0, signal: null, execution_ms: 1_200 },
  ...{ sandbox_profile: of.sandbox_profile, credentials_used: [], violations: [] },
  output: { sha256: 'f'.repeat(64), bytes: 1, chunks: 0, dropped_bytes: 0 },
  ...further,
});
const complete = async (of: AssignmentStatement, further: object = {}, by = agent, sent: Sent = {}) =>
  (await send(agentWorkRoutes.completeStep, result(of, further), by, sent)).body;

const started = () => shop.start(WORKFLOW);
async function running(): Promise<AssignmentStatement> {
  await started();
  const statement = await offer();
  expect(await ack(statement)).toMatchObject({ confirmed: true });
  return statement;
}
const refused = (status: number, code: string) => expect.objectContaining({ status, code });
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

describe('a command, over the agent API', () => {
  it('is offered, acknowledged, prints and completes; the receipt has the digest of what is stored', async () => {
    const message = await started();
    const statement = await offer();
    await ack(statement);
    expect(await write(statement, [chunk(0, 'restarting\n'), chunk(1, 'done\n')])).toMatchObject({ next_seq: 2 });
    const claimed = { sha256: '0'.repeat(64), bytes: 999, chunks: 2, dropped_bytes: 0 };
    expect(await complete(statement, { output: claimed })).toEqual({ result: 'accepted' });
    const { run, receipts } = await shop.finish(message);
    expect(run.status).toBe('succeeded');
    expect(receipts[0]?.command?.output).toEqual({ sha256: sha256('restarting\ndone\n'), bytes: 16, droppedBytes: 0 });
    const place = { tenant: 'acme', runId: message.runId, stepIndex: 0, leaseVersion: 1 };
    expect(archive.objects.get(outputKey(place))?.toString()).toContain('restarting');
  });

  it('that reports the same result twice is settled once', async () => {
    const statement = await running();
    await complete(statement);
    expect(await complete(statement)).toEqual({ result: 'duplicate' });
  });

  it('counts violations and the time of credentials', async () => {
    const statement = await running();
    const used = { id: 'db', source: 'vault', audit_id: null, ttl_seconds: 60, revoked: true, fetch_ms: 250 };
    await sync([], agent, {}, { violations: [{ assignment_id: 'run_9.0.1', rule: 'allow-list' }] });
    await complete(statement, { violations: ['network'], credentials_used: [used] });
    expect(telemetry.metrics).toContainEqual(
      expect.objectContaining({ name: 'sandbox_policy_violations_total', dimensions: {}, sum: 2 }),
    );
    expect(telemetry.metrics).toContainEqual(
      expect.objectContaining({
        name: 'credential_fetch_duration_seconds',
        sum: 0.25,
        dimensions: { source: 'vault' },
      }),
    );
    expect(shop.log.messages('warn')).toContain('a command violated its profile');
  });
});

describe('requests of another agent', () => {
  it.each([
    ['of the same tenant', 'acme'],
    ['of another tenant', 'globex'],
  ])('%s do not reach the assignment', async (_what, tenant) => {
    const message = await started();
    const statement = await offer();
    const thief = await enrolled('thief', tenant);
    const notThere = refused(404, 'NOT_FOUND');
    await expect(ack(statement, thief)).rejects.toEqual(notThere);
    await ack(statement);
    await expect(write(statement, [chunk(0, 'forged')], thief)).rejects.toEqual(notThere);
    await expect(complete(statement, {}, thief)).rejects.toEqual(notThere);
    expect((await sync([statement], thief)).leases).toEqual([
      { assignment_id: statement.assignment_id, expires_at: null },
    ]);
    // Also not with the path of the other agent, its id or its own key.
    for (const sent of [{ id: agent.agentId }, { keyId: agent.agentId }, { id: agent.agentId, keyId: agent.agentId }]) {
      await expect(complete(statement, {}, thief, sent)).rejects.toMatchObject({
        status: expect.toSatisfy((s) => s === 401 || s === 403),
      });
    }
    expect((await shop.now(message)).steps[0]?.status).toBe('running');
    expect(output.inside()).not.toContain('forged');
  });
});

describe('a forged result', () => {
  it('with another idempotency key is refused, and ends no output', async () => {
    const statement = await running();
    await write(statement, [chunk(0, '1')]);
    await expect(complete(statement, { idempotency_key: 'another' })).rejects.toEqual(
      refused(422, 'IDEMPOTENCY_CONFLICT'),
    );
    expect(await write(statement, [chunk(1, '2')])).toMatchObject({ next_seq: 2, full: false });
  });

  it('with another profile, or a negative number, is refused, and ends no output', async () => {
    const statement = await running();
    await write(statement, [chunk(0, '1')]);
    const other = statement.sandbox_profile === 'dev-flex' ? 'prod-critical' : 'dev-flex';
    await expect(complete(statement, { sandbox_profile: other })).rejects.toEqual(refused(400, 'INPUT_INVALID'));
    for (const negative of ['bytes', 'chunks', 'dropped_bytes']) {
      const output = { sha256: 'f'.repeat(64), bytes: 1, chunks: 1, dropped_bytes: 0, [negative]: -1 };
      await expect(complete(statement, { output })).rejects.toEqual(refused(400, 'BAD_REQUEST'));
    }
    expect(await write(statement, [chunk(1, '2')])).toMatchObject({ next_seq: 2, full: false });
    expect(await complete(statement)).toEqual({ result: 'accepted' });
  });

  it('of a command that was never confirmed settles nothing', async () => {
    const message = await started();
    const statement = await offer();
    await expect(write(statement, [chunk(0, '1')])).rejects.toEqual(refused(409, 'CONFLICT'));
    expect(await complete(statement)).toEqual({ result: 'lease_lost' });
    expect((await shop.now(message)).steps[0]?.status).toBe('running');
  });

  it('with another lease or an invented assignment is not found', async () => {
    const statement = await running();
    for (const forged of [
      { ...statement, lease_version: 2 },
      { ...statement, assignment_id: `${statement.session_id}.7.1` },
      { ...statement, assignment_id: 'nonsense' },
    ]) {
      await expect(complete(forged)).rejects.toEqual(refused(404, 'NOT_FOUND'));
    }
  });
});

describe('two processes with one identity', () => {
  it('the older one is refused everything, and the newer one cannot take over its command', async () => {
    const statement = await running();
    const second = agent.secondProcess('boot-one-2');
    await register(second);
    const inUse = refused(409, 'AGENT_IDENTITY_IN_USE');
    await expect(sync([statement])).rejects.toEqual(inUse);
    await expect(write(statement, [chunk(0, '1')])).rejects.toEqual(inUse);
    await expect(complete(statement)).rejects.toEqual(inUse);
    expect((await sync([statement], second)).leases[0]).toMatchObject({ expires_at: null });
    expect(await ack(statement, second)).toMatchObject({ confirmed: false });
    await expect(write(statement, [chunk(0, '1')], second)).rejects.toEqual(refused(409, 'CONFLICT'));
  });
});

it('a process that has not registered is refused without a write: doctor asks so whether the key is accepted', async () => {
  const row = () => shop.runs.agents.agent('acme', agent.agentId);
  const before = await row();
  const doctor = agent.secondProcess('boot-doctor');
  await expect(sync([], doctor)).rejects.toEqual(refused(409, 'AGENT_IDENTITY_IN_USE'));
  expect(await row()).toEqual(before);
  const { registration: _process, ...stopped } = before ?? {};
  if (before) await shop.runs.agents.update(before, stopped as typeof before);
  const unregistered = await row();
  await expect(sync([], doctor)).rejects.toEqual(refused(409, 'AGENT_NOT_REGISTERED'));
  expect(await row()).toEqual(unregistered);
});

it('a process that was restarted reports the result of the one before, with the output that is stored', async () => {
  const message = await started();
  const statement = await offer();
  await ack(statement);
  await write(statement, [chunk(0, '1')]);
  const restarted = agent.secondProcess('boot-one-2');
  await register(restarted);
  expect(await complete(statement, {}, restarted)).toEqual({ result: 'accepted' });
  const { receipts } = await shop.finish(message);
  expect(receipts[0]?.command?.output.sha256).toBe(sha256('1'));
});

describe('a replayed request', () => {
  it('is refused if it is a sync; acknowledgement, output and result change nothing the second time', async () => {
    const message = await started();
    const statement = await offer();
    const events = [
      agent.event(agentWorkRoutes.acknowledgeAssignment, { ...named(statement), accepted: true }),
      agent.event(agentWorkRoutes.appendOutput, { ...named(statement), chunks: [chunk(0, '1')] }),
    ];
    for (const event of [...events, ...events]) expect((await handleAgentWork(ports, event)).statusCode).toBe(200);
    const { seq } = (await shop.now(message)).run;
    const done = agent.event(agentWorkRoutes.completeStep, result(statement));
    const first = JSON.parse((await handleAgentWork(ports, done)).body ?? '');
    const again = JSON.parse((await handleAgentWork(ports, done)).body ?? '');
    expect([first.result, again.result]).toEqual(['accepted', 'duplicate']);
    expect((await shop.now(message)).run.seq).toBe(seq + 1);
    shop.clock.advance(15_000);
    const body = { boot_id: agent.bootId, running: [], socket: false, violations: [] };
    const synced = agent.event(agentWorkRoutes.syncAgent, body);
    await handleAgentWork(ports, synced);
    await expect(handleAgentWork(ports, synced)).rejects.toEqual(refused(409, 'REQUEST_REPLAYED'));
  });

  it('does not renew a lease: each sync that renews one is accepted once, also soon after another one', async () => {
    const message = await started();
    const statement = await offer();
    await ack(statement);
    await sync([statement]);
    shop.clock.advance(5_000);
    const body = { boot_id: agent.bootId, running: [named(statement)], socket: false, violations: [] };
    const renewal = agent.event(agentWorkRoutes.syncAgent, body);
    await handleAgentWork(ports, renewal);
    const lease = async () => {
      const [step] = (await shop.now(message)).steps;
      return step?.status === 'running' ? step.lease.expiresAt : undefined;
    };
    const before = await lease();
    shop.clock.advance(4_000);
    await expect(handleAgentWork(ports, renewal)).rejects.toEqual(refused(409, 'REQUEST_REPLAYED'));
    expect([before, await lease()]).toEqual([expect.any(String), before]);
  });

  it('is refused after a minute, also if it would change nothing', async () => {
    const statement = await running();
    const event = agent.event(agentWorkRoutes.completeStep, result(statement));
    shop.clock.advance(MINUTE_MS + 1_000);
    await expect(handleAgentWork(ports, event)).rejects.toEqual(refused(401, 'SIGNATURE_EXPIRED'));
  });
});

describe('a clock that is wrong', () => {
  it('gets the time of the server, and everything works once it is corrected', async () => {
    const statement = await running();
    for (const skewMs of [-5 * MINUTE_MS, 5 * MINUTE_MS]) {
      await expect(sync([statement], agent, { skewMs })).rejects.toMatchObject({
        code: 'SIGNATURE_EXPIRED',
        fields: { server_time: isoNow(shop.clock) },
      });
    }
    expect((await sync([statement])).leases[0].expires_at).not.toBeNull();
    // A second or two are no problem.
    expect(await complete(statement, {}, agent, { skewMs: 2_000 })).toEqual({ result: 'accepted' });
  });
});

describe('output', () => {
  it('in chunks that are too large, too many or not JSON is refused, and nothing of it is stored', async () => {
    const statement = await running();
    const large = chunk(0, 'x'.repeat(65 * 1024));
    await expect(write(statement, [large])).rejects.toEqual(refused(400, 'BAD_REQUEST'));
    const many = Array.from({ length: 9 }, (_, seq) => chunk(seq, 'x'));
    await expect(write(statement, many)).rejects.toEqual(refused(400, 'BAD_REQUEST'));
    const huge = agent.event(agentWorkRoutes.appendOutput, { ...named(statement), junk: 'x'.repeat(5 * 1024 * 1024) });
    await expect(handleAgentWork(ports, huge)).rejects.toEqual(refused(413, 'TOO_LARGE'));
    expect(output.inside()).toBe('[[],[]]');
  });

  it('of eight full chunks of control characters fits into a request', async () => {
    const statement = await running();
    const chunks = Array.from({ length: 8 }, (_, seq) => chunk(seq, '\u0001'.repeat(64 * 1024)));
    expect(await write(statement, chunks)).toMatchObject({ next_seq: 8 });
  });

  it('out of order is stored in order: the agent repeats from the number in the response', async () => {
    const statement = await running();
    expect(await write(statement, [chunk(1, 'b'), chunk(2, 'c')])).toMatchObject({ next_seq: 0 });
    expect(await write(statement, [chunk(0, '0'), chunk(2, '2')])).toMatchObject({ next_seq: 1 });
    expect(await write(statement, [chunk(1, '1'), chunk(2, '2')])).toMatchObject({ next_seq: 3 });
  });

  it('survives an API that fails in the middle: the agent repeats, and nothing is lost or doubled', async () => {
    const message = await started();
    const statement = await offer();
    await ack(statement);
    for (const crash of ['output.head', 'output.chunk', 'output.saveHead']) {
      const [{ next_seq: seq }] = [await write(statement, [chunk(0, '0')])];
      failing = crash;
      await expect(write(statement, [chunk(seq, String(seq))])).rejects.toThrow('the function crashed');
      expect(await write(statement, [chunk(seq, String(seq))])).toMatchObject({ next_seq: seq + 1 });
    }
    failing = 'output.saveHead';
    await expect(complete(statement)).rejects.toThrow('the function crashed');
    expect((await shop.now(message)).steps[0]?.status).toBe('running');
    expect(await complete(statement)).toEqual({ result: 'accepted' });
    const { receipts } = await shop.finish(message);
    expect(receipts[0]?.command?.output.sha256).toBe(sha256('0123'));
  });

  it('does not delay a result when S3 does not respond', async () => {
    const message = await started();
    const statement = await offer();
    await ack(statement);
    await write(statement, [chunk(0, '1')]);
    archive.isDown = true;
    expect(await complete(statement)).toEqual({ result: 'accepted' });
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect(output.outbox).toMatchObject([{ kind: 'store_output', stepIndex: 0, leaseVersion: 1 }]);
  });
});

describe('an agent that was removed', () => {
  it('is refused with its next request, and its command is lost when the lease ends', async () => {
    const message = await started();
    const statement = await offer();
    await ack(statement);
    const row = await shop.runs.agents.agent('acme', agent.agentId);
    if (row) await shop.runs.agents.delete(row);
    const unknown = refused(401, 'SIGNATURE_INVALID');
    await expect(sync([statement])).rejects.toEqual(unknown);
    await expect(complete(statement)).rejects.toEqual(unknown);
    await shop.pass(31);
    expect((await shop.now(message)).run.status).toBe('needs_human');
  });
});
