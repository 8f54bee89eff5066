import { type ChildProcess, spawn } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { enrolAgent } from '../agent/enrol.ts';
import { RuntimeClient } from '../agent/runtime-client.ts';
import { ServerClock } from '../agent/server-clock.ts';
import { machine } from '../agent/system.ts';
import { buildCli } from '../bin/build/build-cli.ts';
import { AGENT_PROTOCOL_VERSION, SYNC_INTERVAL_MS, SYNC_WITHOUT_SOCKET_MS } from '../lambdas/agents/agent-terms.ts';
import { keyThumbprint } from '../lambdas/agents/request-signature.ts';
import type { RequestReport } from '../local/aws/request-counts.ts';
import type { Host } from '../local/host/host.ts';
import { percentile, round } from './figures.ts';

const AGENTS = 200;
const COMMANDS = 20;
const AT_ONCE = 16;
const SLACK_MS = 500;
/** Agents, of which each could run a command. */
const FLEETS = [200, 1_000];
const DISPATCHES = 20;
const MINUTE_MS = 60_000;
const AGENTS_OF_COST = 1_000;
const MINUTES_OF_MONTH = 30 * 24 * 60;
/** us-east-1, USD for each million, as in docs/cost-and-throughput.md. Compute: 15 ms with 256 MB. */
const PRICE = { httpApi: 1, lambda: 0.2, compute: 15e-3 * 0.25 * 16.6667, read: 0.125, write: 0.625 } as const;

export interface AgentFigures {
  assignmentToFirstOutputP50Ms: number;
  assignmentToFirstOutputP99Ms: number;
  idleMemoryMb: number;
  /** Of 200 simulated agents that are idle: with a sync each 5 s (no socket), and each 15 s (with a socket). */
  perAgentMinute: Record<'withoutSocket' | 'withSocket', Record<string, number>>;
  usdPerMonthOf1000Agents: Record<'withoutSocket' | 'withSocket', number>;
  /** The search for an agent, by the number of agents that are idle. */
  perDispatch: Record<string, Searches>;
}

/** What the worker reads to find an agent: DynamoDB requests and read units. */
export interface Searches {
  requests: number;
  units: number;
}

/** Measures agents on a host whose policy allows every write. `folder` is empty. */
export async function agentFigures(host: Host, folder: string, searches: () => Searches): Promise<AgentFigures> {
  const stage = new Stage(host.url);
  const { latencies, idleMemoryMb } = await realAgent(stage, folder);
  const agents = await simulatedAgents(stage, 0, AGENTS);
  const withoutSocket = await stage.agentMinute(agents, SYNC_WITHOUT_SOCKET_MS);
  const withSocket = await stage.agentMinute(agents, SYNC_INTERVAL_MS);
  const perDispatch: AgentFigures['perDispatch'] = {};
  for (const size of FLEETS) {
    agents.push(...(await simulatedAgents(stage, agents.length, size)));
    perDispatch[size] = await stage.dispatches(agents, searches);
  }
  return {
    assignmentToFirstOutputP50Ms: percentile(latencies, 50),
    assignmentToFirstOutputP99Ms: percentile(latencies, 99),
    idleMemoryMb,
    perAgentMinute: { withoutSocket, withSocket },
    usdPerMonthOf1000Agents: { withoutSocket: monthly(withoutSocket), withSocket: monthly(withSocket) },
    perDispatch,
  };
}

/** The API of the host, as Olivia uses it, and its controls. */
class Stage {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  async request<Body>(method: string, path: string, body?: unknown): Promise<Body> {
    const headers = { 'x-api-key': 'local-owner-key', 'content-type': 'application/json' };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(`${this.url}${path}`, { method, headers, ...sent });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as Body;
  }

  async token(name: string): Promise<string> {
    const wanted = { name, environments: ['dev'], networkSegment: null };
    return (await this.request<{ token: string }>('POST', '/api/v1/enrolment-tokens', wanted)).token;
  }

  /** DynamoDB requests and requests of agents, for each agent and minute. */
  async agentMinute(agents: readonly SimulatedAgent[], everyMs: number): Promise<Record<string, number>> {
    await inTurns(agents, (agent) => agent.sync());
    await this.request('DELETE', '/_local/requests');
    const rounds = MINUTE_MS / everyMs;
    await this.#rounds(agents, rounds, everyMs);
    const { functions } = await this.request<RequestReport>('GET', '/_local/requests');
    const counted: Record<string, number> = { syncs: rounds };
    for (const { dynamodb = {} } of Object.values(functions)) {
      for (const [operation, count] of Object.entries(dynamodb)) {
        counted[operation] = (counted[operation] ?? 0) + count / agents.length;
      }
    }
    return Object.fromEntries(Object.entries(counted).map(([name, count]) => [name, round(count)]));
  }

  async #rounds(agents: readonly SimulatedAgent[], rounds: number, everyMs: number): Promise<void> {
    let elapsedMs = 0;
    for (let round = 0; round < rounds; round += 1) {
      // The clock of the host also runs while the agents sync. The slack: no sync comes before its time.
      const advanceSeconds = Math.max(0, everyMs + SLACK_MS - elapsedMs) / 1000;
      await this.request('POST', '/_local/clock', { advanceSeconds });
      const began = performance.now();
      await inTurns(agents, (agent) => agent.sync());
      elapsedMs = Math.round(performance.now() - began);
    }
  }

  /** Starts runs of a command that each agent could run, and cancels them as soon as an agent was found. */
  async dispatches(agents: readonly SimulatedAgent[], searches: () => Searches): Promise<Searches> {
    // Agents that were offline get nothing for a minute.
    await this.#rounds(agents, 6, SYNC_INTERVAL_MS);
    const before = searches();
    for (let count = 0; count < DISPATCHES; count += 1) {
      const { runId } = await this.request<{ runId: string }>('POST', '/api/v1/automations/bench-agent/run', {});
      const path = `/api/v1/runs/${runId}`;
      const isClaimed = async () => {
        const { commits } = await this.request<ShownEvents>('GET', `${path}/events?since=0`);
        return commits.some(({ events }) => events.some(({ type }) => type === 'step.claimed'));
      };
      while (!(await isClaimed())) await pause(20);
      await this.request('POST', `${path}/cancel`, { reason: 'bench' });
    }
    // A search that has just begun.
    await pause(1_000);
    const { requests, units } = searches();
    return {
      requests: round((requests - before.requests) / DISPATCHES),
      units: round((units - before.units) / DISPATCHES),
    };
  }
}

interface SimulatedAgent {
  sync(): Promise<unknown>;
}

/** Agents that only sync: each with its own key, enrolled and registered through the API. */
async function simulatedAgents(stage: Stage, from: number, to: number): Promise<SimulatedAgent[]> {
  const agents: SimulatedAgent[] = [];
  const names = Array.from({ length: to - from }, (_, index) => `bench-${from + index}`);
  await inTurns(names, async (name) => {
    const { privateKey: key } = generateKeyPairSync('ed25519');
    const publicKey = createPublicKey(key);
    const bootId = randomBytes(12).toString('hex');
    const spki = publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
    const enrolment = { token: await stage.token(name), public_key: spki, agent_version: 'bench' };
    const { agent_id } = await clientOf(stage, keyThumbprint(publicKey), key, bootId).enrol(enrolment);
    const client = clientOf(stage, agent_id, key, bootId);
    const host = { platform: 'linux', arch: 'x64', node: process.versions.node };
    const facts = { agent_version: 'bench', boot_id: bootId, capabilities: ['bench'], environments: ['dev' as const] };
    await client.register({ protocol: AGENT_PROTOCOL_VERSION, ...facts, profiles: ['dev-flex'], slots: 1, host });
    agents.push({ sync: () => client.heartbeat({ boot_id: bootId, running: [], socket: false, violations: [] }) });
  });
  return agents;
}

const clientOf = ({ url }: Stage, keyId: string, key: KeyObject, bootId: string): RuntimeClient =>
  new RuntimeClient(url, { keyId, key, bootId }, new ServerClock(machine), machine);

/** The program as it is installed: its memory when it has nothing to do, and how fast it starts commands. */
async function realAgent(stage: Stage, folder: string): Promise<{ latencies: number[]; idleMemoryMb: number }> {
  await buildCli(join(folder, 'dist'));
  const dir = join(folder, 'agent');
  const token = await stage.token('bench');
  await enrolAgent({ url: stage.url, token, dir, fingerprints: [], version: 'bench' }, machine);
  writeFileSync(join(dir, 'agent.yaml'), 'capabilities: [bench]\n', { mode: 0o600 });
  const program = join(folder, 'dist', 'countersign-agent.mjs');
  const agent = spawn(process.execPath, [program, 'run', '--dir', dir], { stdio: 'ignore' });
  try {
    await pause(IDLE_AFTER_MS);
    const idleMemoryMb = residentMb(agent);
    const latencies: number[] = [];
    for (let count = 0; count < COMMANDS; count += 1) latencies.push(await firstOutputMs(stage));
    return { latencies, idleMemoryMb };
  } finally {
    const exit = once(agent, 'exit');
    agent.kill('SIGTERM');
    await exit;
  }
}

/** By then V8 has collected what only the start needed. */
const IDLE_AFTER_MS = 40_000;

const residentMb = ({ pid }: ChildProcess): number => {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
  return Math.round(Number(kilobytes) / 1000);
};

interface ShownEvents {
  commits: { at: string; events: { type: string }[] }[];
}

/** From the commit that claims the step, which offers it to the agent, to the time of the first output. */
async function firstOutputMs(stage: Stage): Promise<number> {
  // Otherwise each run would begin just after a sync, and wait for the whole interval.
  await pause(machine.random() * SYNC_WITHOUT_SOCKET_MS);
  const { runId } = await stage.request<{ runId: string }>('POST', '/api/v1/automations/bench-agent/run', {});
  for (;;) {
    const path = `/api/v1/runs/${runId}`;
    const { status } = await stage.request<{ status: string }>('GET', path);
    if (status === 'failed_terminal') throw new Error(`${runId} failed`);
    if (status === 'succeeded') {
      const { commits } = await stage.request<ShownEvents>('GET', `${path}/events?since=0`);
      const claimed = commits.find(({ events }) => events.some(({ type }) => type === 'step.claimed'));
      const output = await stage.request<{ chunks: { at: string }[] }>('GET', `${path}/steps/run/output`);
      const first = output.chunks[0];
      if (!claimed || !first) throw new Error(`${runId} has no claim or no output`);
      return Date.parse(first.at) - Date.parse(claimed.at);
    }
    await pause(50);
  }
}

async function inTurns<Item>(items: readonly Item[], work: (item: Item) => Promise<unknown>): Promise<void> {
  const left = items.values();
  const lane = async () => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

/** HTTP API, function, and one unit for each read or write, because the row of an agent is small. */
function monthly(perMinute: Record<string, number>): number {
  const { syncs = 0, ...operations } = perMinute;
  const isWrite = (name: string) => /Put|Update|Delete|Transact/.test(name);
  const database = Object.entries(operations).reduce(
    (sum, [name, count]) => sum + count * (isWrite(name) ? PRICE.write : PRICE.read),
    0,
  );
  const requests = syncs * (PRICE.httpApi + PRICE.lambda + PRICE.compute);
  return Math.round(((database + requests) * AGENTS_OF_COST * MINUTES_OF_MONTH) / 1e6);
}
