import type * as z from 'zod';
import type { Agent } from '../../../lambdas/agents/agent.ts';
import type { SyncResult } from '../../../lambdas/agents/agent-requests.ts';
import {
  type AckResponse,
  AssignmentStatement,
  type CompleteRequest,
  type CompleteResponse,
} from '../../../lambdas/agents/protocol.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { Invocation } from '../environment/invocation.ts';
import type { SessionProcess } from './session-process.ts';
import type { AgentBehavior, AgentWorld } from './simulated-agents.ts';

const SYNCS_EVERY_MS = 5_000;
const SYNCS_WHILE_RUNNING_MS = 10_000;
const RETRIES_AFTER_MS = [200, 4_000] as const;
/** Source: an agent gives up reporting a result that the runtime refuses or cannot take. */
const REPORTS_MAX = 30;

type Result = typeof CompleteRequest._zod.output;

interface Running {
  statement: AssignmentStatement;
  /** Until when the runtime lets it run, by the time of the runtime. */
  leaseEndsMs: number;
  stop: (why: 'canceled' | 'lease_lost') => void;
  /** The session that the command is. */
  session: () => SessionProcess | undefined;
}

/** The identity is used by a newer process. */
class Replaced extends Error {}

/**
 * One process of an agent, as agent/ implements it: it runs a command only after a confirmed acknowledgement, before
 * `start_before` and within its lease; it stops a command whose lease is lost or that it cannot renew; it reports each
 * result until somebody confirms it. A crash ends its commands; the next process reports that their result is unknown.
 */
export class AgentProcess {
  readonly agent: Agent;
  readonly bootId: string;
  /** Results that the runtime has not confirmed. They are stored on disk, so that the next process can report them. */
  readonly unreported: Map<string, Result>;
  readonly #world: AgentWorld;
  readonly #behavior: AgentBehavior;
  readonly #invocation: Invocation;
  readonly #running = new Map<string, Running>();
  /** The journal on disk: commands that were started and have no result. */
  readonly journal: Map<string, AssignmentStatement>;
  readonly #seen = new Set<string>();
  #wake: (() => void) | undefined;

  constructor(
    world: AgentWorld,
    behavior: AgentBehavior,
    agent: Agent,
    bootId: string,
    unreported: Map<string, Result>,
    journal: ReadonlyMap<string, AssignmentStatement>,
  ) {
    this.#world = world;
    this.#behavior = behavior;
    this.agent = agent;
    this.bootId = bootId;
    this.unreported = new Map(unreported);
    this.journal = new Map(journal);
    this.#invocation = new Invocation(world.time, {
      ...{ id: `${agent.tenant} ${agent.agentId} ${bootId}`, tenant: agent.tenant, machine: 0, skewMs: 0 },
      ...{ timeoutMs: Number.POSITIVE_INFINITY, outlivesTimeout: true },
    });
  }

  /** It waits for its next assignment. */
  get isIdle(): boolean {
    return this.#wake !== undefined;
  }

  wake(): void {
    this.#invocation.resume(() => {
      const wake = this.#wake;
      this.#wake = undefined;
      wake?.();
    });
  }

  run(ended: (how: 'crashed' | 'replaced') => void): void {
    this.#invocation.onEnd((ending) => {
      // A crash ends its commands.
      if (ending === 'killed') for (const { session } of this.#running.values()) session()?.stop();
      ended(ending === 'killed' ? 'crashed' : 'replaced');
    });
    this.#loop().catch((error: unknown) => {
      if (!(error instanceof Replaced)) throw error;
      for (const { stop } of this.#running.values()) stop('lease_lost');
      this.#invocation.end('returned', undefined);
    });
  }

  async #loop(): Promise<void> {
    await this.#request('register', (functions, reply) => functions.registerAgent(this, this.#behavior.slots, reply));
    for (const statement of this.journal.values()) this.#result(statement, 'unknown');
    for (const result of this.unreported.values()) void this.#report(result);
    for (;;) {
      await this.#sync();
      if (this.#running.size > 0) await this.#sleep(SYNCS_WHILE_RUNNING_MS);
      else if (this.#hasOffers()) await this.#sleep(SYNCS_EVERY_MS);
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }

  #hasOffers(): boolean {
    const now = new Date(this.#world.time.now()).toISOString();
    const row = this.#world.store.agents.peek(this.agent);
    return row?.assignments.some(({ state, until }) => state === 'offered' && until > now) === true;
  }

  async #sync(): Promise<void> {
    const running = [...this.#running.values()].map(({ statement }) => statement);
    const synced = await this.#once<SyncResult>('sync', (functions, reply) =>
      functions.syncAgent(this, running, reply),
    );
    if (!synced) return;
    for (const { assignment_id, expires_at } of synced.leases) {
      const held = this.#running.get(assignment_id);
      if (expires_at === null) held?.stop('lease_lost');
      else if (held) held.leaseEndsMs = Date.parse(expires_at);
    }
    for (const { assignment_id } of synced.cancels) this.#running.get(assignment_id)?.stop('canceled');
    for (const { assignment_id, envelope } of synced.assignments) {
      if (this.#seen.has(assignment_id)) continue;
      this.#seen.add(assignment_id);
      const { payload } = envelope as { payload: string };
      const statement = AssignmentStatement.parse(JSON.parse(Buffer.from(payload, 'base64').toString()));
      this.#take(statement).catch((error: unknown) => {
        if (!(error instanceof Replaced)) throw error;
      });
    }
  }

  async #take(statement: AssignmentStatement): Promise<void> {
    const { random, isCalm, invariants, commandSessions, time } = this.#world;
    const { assignment_id, start_before, stdin_sha256 } = statement;
    const refusal = !isCalm() && random.chance(this.#behavior.refusalChance);
    const full = this.#running.size >= this.#behavior.slots;
    const ack = await this.#request<z.infer<typeof AckResponse>>('ack', (functions, reply) =>
      functions.acknowledge(this, statement, refusal || full ? 'unable' : undefined, reply),
    );
    if (!ack.confirmed) return;
    const leaseEndsMs = Date.parse(ack.expires_at ?? '');
    const { stdin } = ack;
    commandSessions.acknowledged(statement, stdin);
    const isSigned = stdin_sha256 === (stdin === undefined ? undefined : sha256Hex(stdin));
    const never = !isSigned || Math.min(leaseEndsMs, Date.parse(start_before)) <= time.now();
    if (never || (!isCalm() && random.chance(this.#behavior.refusalChance))) {
      await this.#report(this.#result(statement, 'never_started'));
      return;
    }
    this.journal.set(assignment_id, statement);
    invariants.started(this, statement);
    commandSessions.started(statement, stdin);
    const how = await this.#execute(statement, leaseEndsMs, stdin);
    await this.#report(this.#result(statement, how));
  }

  /** Ends by itself, or is stopped: by a cancel, or because the lease is lost or could not be renewed in time. */
  #execute(statement: AssignmentStatement, leaseEndsMs: number, stdin?: string): Promise<Result['status']> {
    const { time } = this.#world;
    const { assignment_id } = statement;
    return new Promise((resolve) => {
      let session: SessionProcess | undefined;
      const end = (status: Result['status']) => {
        if (!this.#running.delete(assignment_id)) return;
        session?.stop();
        resolve(status);
      };
      const running: Running = { statement, leaseEndsMs, stop: () => end('canceled'), session: () => session };
      this.#running.set(assignment_id, running);
      const watch = () =>
        this.#later(running.leaseEndsMs - time.now(), () => {
          if (!this.#running.has(assignment_id)) return;
          if (running.leaseEndsMs <= time.now()) end('canceled');
          else watch();
        });
      watch();
      if (stdin === undefined) this.#endLater(end);
      else session = this.#startSession(statement, stdin, end);
    });
  }

  #endLater(end: (status: Result['status']) => void): void {
    const { random, isCalm } = this.#world;
    const fails = !isCalm() && random.chance(this.#behavior.failureChance);
    this.#later(random.between(...this.#behavior.commandMs), () => end(fails ? 'failed' : 'succeeded'));
  }

  /** The command is a session: it ends with it, at the latest after its timeout. */
  #startSession(
    { tenant, assignment_id: id, timeout_seconds }: AssignmentStatement,
    stdin: string,
    end: (status: Result['status']) => void,
  ): SessionProcess | undefined {
    this.#later(timeout_seconds * 1_000, () => end('timed_out'));
    return this.#world.sessions()?.startCommand({
      ...{ tenant, id, stdin },
      ends: (how) => this.#invocation.resume(() => end(how === 'completed' ? 'succeeded' : 'failed')),
      crashes: () => this.#invocation.kill(),
    });
  }

  #result(statement: AssignmentStatement, status: Result['status']): Result {
    const { assignment_id, lease_version, idempotency_key, sandbox_profile } = statement;
    const ran = status === 'succeeded' || status === 'failed';
    const result: Result = {
      ...{ assignment_id, lease_version, idempotency_key, sandbox_profile, status },
      ...{ exit_code: ran ? (status === 'failed' ? 1 : 0) : null, signal: null, execution_ms: 1_000 },
      output: { sha256: sha256Hex(`${assignment_id} ${this.bootId}`), bytes: 10, chunks: 1, dropped_bytes: 0 },
      ...{ credentials_used: [], violations: [] },
    };
    this.#world.invariants.ended(result);
    this.unreported.set(assignment_id, result);
    this.journal.delete(assignment_id);
    return result;
  }

  async #report(result: Result): Promise<void> {
    for (let times = 1; times <= REPORTS_MAX; times += 1) {
      const answer = await this.#once<z.infer<typeof CompleteResponse>>('complete', (functions, reply) =>
        functions.complete(this, result, reply),
      );
      if (answer) {
        this.unreported.delete(result.assignment_id);
        this.#world.invariants.reported(this.agent.tenant, result, answer.result);
        return;
      }
      await this.#sleep(this.#world.random.between(...RETRIES_AFTER_MS));
    }
  }

  /** Repeats a request until there is a response. */
  async #request<T extends object>(name: string, send: Send<T>): Promise<T> {
    for (;;) {
      const response = await this.#once(name, send);
      if (response) return response;
      await this.#sleep(this.#world.random.between(...RETRIES_AFTER_MS));
    }
  }

  /** One request over the network, which may lose it, delay it, or lose its response. */
  async #once<T extends object>(name: string, send: Send<T>): Promise<T | undefined> {
    const { faultyCalls, functions } = this.#world;
    const effect = () => new Promise<Reply<T>>((resolve) => send(functions(), resolve));
    const call = { kind: 'agent' as const, name: `agent ${name}` };
    const reply = await faultyCalls.call(this.#invocation, call, effect).catch(() => undefined);
    if (reply === 'replaced') throw new Replaced();
    return reply === 'failed' ? undefined : reply;
  }

  #later(ms: number, then: () => void): void {
    this.#world.time.after(ms, () => this.#invocation.resume(then));
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#later(ms, resolve));
  }
}

/** What the API responds: the result, an error that the agent retries, or that a newer process uses its identity. */
export type Reply<T> = T | 'failed' | 'replaced' | undefined;
type Send<T> = (functions: ReturnType<AgentWorld['functions']>, reply: (reply: Reply<T>) => void) => void;
