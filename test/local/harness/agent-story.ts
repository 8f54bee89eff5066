import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { RuntimeClient } from '../../../agent/runtime-client.ts';
import { ServerClock } from '../../../agent/server-clock.ts';
import { machine } from '../../../agent/system.ts';
import { AGENT_SOCKET_PATH } from '../../../lambdas/agents/agent-terms.ts';
import { AssignmentStatement } from '../../../lambdas/agents/protocol.ts';
import { formatNonce, keyThumbprint, signRequest } from '../../../lambdas/agents/request-signature.ts';
import { eventually } from './eventually.ts';
import { ACME_KEY } from './host-client.ts';
import type { TestHost } from './test-host.ts';

interface Sent {
  key?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

/** A request of a person to the API. Fails if it is refused. */
export async function ask<Body>(host: TestHost, method: string, path: string, sent: Sent = {}): Promise<Body> {
  const { key = ACME_KEY, body, headers } = sent;
  const text = typeof body === 'string' ? body : JSON.stringify(body ?? {});
  const answer = await host.request<Body>(method, `/api/v1${path}`, {
    headers: { 'x-api-key': key, ...headers },
    ...(method !== 'GET' && { body: text }),
  });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return answer.body;
}

/** Publishes the workflow that the agents of these tests run. */
export async function publishCommand(host: TestHost): Promise<void> {
  const step =
    '{id: restart, tool: agent.command, with: {command: /usr/bin/uptime, args: [], environment: dev, credentials: [db]}}';
  const body = `name: uptime\nsteps:\n  - ${step}\n`;
  await ask(host, 'POST', '/workflows', { body, headers: { 'content-type': 'application/yaml' } });
  const files = {
    'agents.cedar':
      '@id("agents")\npermit (principal, action == Action::"execute", resource == Operation::"agent.command");',
  };
  await ask(host, 'PUT', '/policies', { body: { engine: 'cedar', files } });
  await host.advance(61_000);
}

export const startCommand = async (host: TestHost): Promise<string> =>
  (await ask<{ runId: string }>(host, 'POST', '/runs', { body: { workflow: { name: 'uptime' } } })).runId;

/** An agent that runs nothing: the client of the agent program, with results that a test chooses. */
export class StoryAgent {
  readonly host: TestHost;
  readonly keys: { publicKey: KeyObject; privateKey: KeyObject };
  agentId = '';
  #aheadMs = 0;
  client: RuntimeClient;
  bootId = '';

  constructor(host: TestHost, keys: StoryAgent['keys'] = generateKeyPairSync('ed25519')) {
    this.host = host;
    this.keys = keys;
    this.client = this.#clientAs(keyThumbprint(this.keys.publicKey));
  }

  /** A new process of the agent. */
  boot(): RuntimeClient {
    this.client = this.#clientAs(this.agentId);
    return this.client;
  }

  /** The process of an enrolled agent that has been running. */
  async continue(agentId: string, bootId: string): Promise<void> {
    this.agentId = agentId;
    await this.useTimeOfHost();
    this.client = this.#clientAs(agentId, bootId);
  }

  #clientAs(keyId: string, bootId = randomBytes(12).toString('hex')): RuntimeClient {
    this.bootId = bootId;
    const caller = { keyId, key: this.keys.privateKey, bootId: this.bootId };
    const ahead = this.#aheadMs;
    const clock = new ServerClock({ ...machine, wall: () => machine.wall() + ahead });
    return new RuntimeClient(this.host.url, caller, clock, machine);
  }

  async enrol(token: string): Promise<void> {
    await this.useTimeOfHost();
    this.client = this.#clientAs(keyThumbprint(this.keys.publicKey));
    const public_key = this.keys.publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
    this.agentId = (await this.client.enrol({ token, public_key, agent_version: '0.1.0' })).agent_id;
    this.boot();
  }

  register() {
    return this.client.register({
      ...{ protocol: 1, agent_version: '0.1.0', boot_id: this.bootId, capabilities: [], environments: ['dev'] },
      ...{ profiles: ['dev-flex'], slots: 2, host: { platform: 'linux', arch: 'x64', node: '24' } },
    });
  }

  /** After a test has moved the clock of the host: an agent corrects its own clock by some minutes only. */
  async registerAgain(): Promise<void> {
    await this.useTimeOfHost();
    this.boot();
    await this.register();
  }

  async useTimeOfHost(): Promise<void> {
    this.#aheadMs = (await this.host.now()) - machine.wall();
  }

  /** The headers with which the agent opens its socket. */
  socketHeaders(): Record<string, string> {
    const nonce = formatNonce(this.bootId, 1);
    const created = machine.wall() + this.#aheadMs;
    const parameters = { keyId: this.agentId, nonce, created };
    return signRequest({ method: 'GET', path: AGENT_SOCKET_PATH, body: '' }, parameters, this.keys.privateKey);
  }

  sync(running: AssignmentStatement[] = []) {
    const ran = running.map(({ assignment_id, lease_version }) => ({ assignment_id, lease_version }));
    return this.client.heartbeat({ boot_id: this.bootId, running: ran, socket: false, violations: [] });
  }

  /** Waits for an assignment and acknowledges it. */
  async take(): Promise<AssignmentStatement> {
    const envelope = await eventually('an assignment', async () => (await this.sync()).assignments[0]?.envelope);
    const { payload } = envelope as { payload: string };
    const statement = AssignmentStatement.parse(JSON.parse(Buffer.from(payload, 'base64').toString()));
    const { assignment_id, lease_version } = statement;
    const { confirmed, reason } = await this.client.ack({ assignment_id, lease_version, accepted: true });
    if (!confirmed) throw new Error(`not confirmed: ${reason}`);
    return statement;
  }

  print({ assignment_id, lease_version, issued_at }: AssignmentStatement, stream_seq: number, data: string) {
    const chunks = [{ stream_seq, chunk_type: 'stdout' as const, at: issued_at, data }];
    return this.client.output({ assignment_id, lease_version, chunks });
  }

  complete(
    { assignment_id, lease_version, idempotency_key, sandbox_profile }: AssignmentStatement,
    chunks: number,
    reported: Partial<Parameters<RuntimeClient['complete']>[0]> = {},
  ) {
    return this.client.complete({
      ...{ assignment_id, lease_version, idempotency_key, sandbox_profile, status: 'succeeded', exit_code: 0 },
      ...{ signal: null, execution_ms: 20, credentials_used: [], violations: [] },
      output: { sha256: '0'.repeat(64), bytes: 0, chunks, dropped_bytes: 0 },
      ...reported,
    });
  }
}

export async function enrolledAgent(host: TestHost, name: string): Promise<StoryAgent> {
  const body = { name, environments: ['dev'] };
  const { token } = await ask<{ token: string }>(host, 'POST', '/enrolment-tokens', { body });
  const agent = new StoryAgent(host);
  await agent.enrol(token);
  await agent.register();
  return agent;
}
