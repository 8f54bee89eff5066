import type * as z from 'zod';
import {
  AGENT_PROTOCOL_VERSION,
  type ProfileName,
  SYNC_INTERVAL_MS,
  SYNC_WITHOUT_SOCKET_MS,
} from '../lambdas/agents/agent-terms.ts';
import type { HeartbeatResponse, Intervals } from '../lambdas/agents/protocol.ts';
import { AgentError } from './agent-error.ts';
import type { AgentFolder, Identity } from './agent-folder.ts';
import { Deliveries } from './deliver-results.ts';
import { ReceiveAssignments } from './receive-assignments.ts';
import type { ResultSpool } from './result-spool.ts';
import type { CommandPorts } from './run-command.ts';
import { type RuntimeClient, RuntimeRefused, RuntimeUnavailable } from './runtime-client.ts';
import { SyncSocket } from './sync-socket.ts';
import { pinnedAfter } from './verify-assignment.ts';

export interface AgentPorts extends CommandPorts {
  client: RuntimeClient;
  folder: AgentFolder;
  identity: Identity;
  profiles: readonly ProfileName[];
  spool: ResultSpool;
  bootId: string;
  version: string;
}

type Sync = z.infer<typeof HeartbeatResponse>;

/** `drained`: all work is done and reported. `replaced`: another process uses the identity of this agent. */
export type Ending = 'drained' | 'replaced';

const BACKOFF_MS = { first: 1_000, max: 30_000, maxWhileRunning: 3_000 } as const;
const PAUSE_MS = { min: 100, max: 60_000 } as const;
/** Two requests at the same moment: the next try succeeds. */
const CONFLICT = 409;
const IDENTITY_IN_USE = 'AGENT_IDENTITY_IN_USE';

/** Registers, syncs, and runs what the runtime assigns, until it is asked to stop. */
export class AgentProgram {
  readonly #ports: AgentPorts;
  readonly #deliveries: Deliveries;
  readonly #assignments: ReceiveAssignments;
  readonly #socket: SyncSocket;
  #intervals: z.infer<typeof Intervals> = {
    sync_ms: SYNC_INTERVAL_MS,
    sync_while_running_ms: SYNC_WITHOUT_SOCKET_MS,
    sync_without_socket_ms: SYNC_WITHOUT_SOCKET_MS,
  };
  #failures = 0;
  #wake = new AbortController();
  #drainReason: string | undefined;
  #isRuntimeDraining = false;
  #isReplaced = false;
  #askKeysFrom = Number.NEGATIVE_INFINITY;

  constructor(ports: AgentPorts) {
    this.#ports = ports;
    this.#deliveries = new Deliveries(ports, (error) => this.#notice(error));
    const syncSoon = () => this.#wake.abort();
    this.#socket = new SyncSocket(ports, syncSoon);
    this.#assignments = new ReceiveAssignments(ports, this.#deliveries, {
      syncSoon,
      askForKeys: () => this.#askForKeys(),
    });
  }

  /** Finishes its commands, accepts no new ones, and ends. */
  drain(reason: string): void {
    if (this.#drainReason !== undefined) return;
    this.#drainReason = reason;
    this.#assignments.drain();
    this.#ports.log.info('draining: finishing commands, accepting no new ones', { reason });
    this.#wake.abort();
  }

  /** Stops all commands, too. */
  stopCommands(reason: string): void {
    this.#assignments.stopAll(reason);
  }

  async run(): Promise<Ending> {
    try {
      return await this.#run();
    } finally {
      this.#socket.close();
    }
  }

  async #run(): Promise<Ending> {
    await this.#retrying('register', () => this.#register());
    this.#assignments.recover();
    let isRuntimeInformed = false;
    for (;;) {
      if (this.#drainReason !== undefined && !isRuntimeInformed)
        isRuntimeInformed = await this.#announceDrain(this.#drainReason);
      if (this.#isReplaced) return this.#giveUp();
      if (this.#drainReason !== undefined && this.#assignments.isIdle && this.#deliveries.isIdle) break;
      await this.#sync();
      if (!this.#isReplaced) await this.#pause();
    }
    await this.#ports.client.unregister().catch(() => undefined);
    this.#ports.log.info('stopped');
    return 'drained';
  }

  async #register(): Promise<void> {
    const { client, config, identity, profiles, bootId, version } = this.#ports;
    const environments = identity.environments.filter((each) => config.environments?.includes(each) ?? true);
    const { intervals, new_signing_keys, socket } = await client.register({
      protocol: AGENT_PROTOCOL_VERSION,
      agent_version: version,
      boot_id: bootId,
      capabilities: config.capabilities,
      environments,
      profiles: [...profiles],
      slots: config.slots,
      host: { platform: process.platform, arch: process.arch, node: process.versions.node },
    });
    this.#intervals = intervals;
    for (const { envelope } of new_signing_keys) this.#pin(envelope);
    this.#socket.use(socket?.url);
    this.#ports.log.info('registered', {
      agent: identity.name,
      id: identity.agent_id,
      profiles: profiles.join(','),
      slots: config.slots,
    });
  }

  /** An introduction by a key that is not pinned is ignored: it is older than the enrolment, or it is forged. */
  #pin(envelope: unknown): void {
    const { identity, folder, log } = this.#ports;
    const keys = pinnedAfter(envelope, identity.signing_keys);
    if (!keys) return;
    identity.signing_keys = keys;
    folder.writeIdentity(identity);
    log.info('the key that signs assignments was replaced', { key: keys.at(-1)?.key_id });
  }

  /** An assignment is signed by an unknown key. Perhaps it is a new one that the runtime can introduce. */
  async #askForKeys(): Promise<boolean> {
    const { system, identity } = this.#ports;
    if (system.monotonic() < this.#askKeysFrom) return false;
    this.#askKeysFrom = system.monotonic() + ASK_KEYS_EVERY_MS;
    const before = identity.signing_keys;
    await this.#register().catch((error: unknown) => this.#notice(error));
    return identity.signing_keys !== before;
  }

  async #sync(): Promise<void> {
    const { client, bootId, clock } = this.#ports;
    const violations = this.#assignments.takeViolations();
    try {
      const errored = clock.isWrong
        ? `the clock of this host is ${Math.round(clock.difference / 1000)} s from the runtime's; synchronize it (NTP)`
        : undefined;
      const sync = await client.heartbeat({
        boot_id: bootId,
        running: this.#assignments.running(),
        socket: this.#socket.isOpen,
        violations,
        ...(errored !== undefined && { errored }),
      });
      this.#connected();
      this.#apply(sync);
    } catch (error) {
      this.#assignments.returnViolations(violations);
      await this.#notice(error);
    }
  }

  #apply(sync: Sync): void {
    this.#intervals = sync.intervals;
    if (sync.drain !== this.#isRuntimeDraining) {
      this.#isRuntimeDraining = sync.drain;
      this.#ports.log.info(
        sync.drain ? 'the runtime drains this agent: it accepts no new commands' : 'the runtime assigns work again',
      );
    }
    this.#assignments.apply(sync);
  }

  #connected(): void {
    if (this.#failures > 0) this.#ports.log.info('the runtime responds again', { failures: this.#failures });
    this.#failures = 0;
  }

  /** Reacts to a failed request. */
  async #notice(error: unknown): Promise<void> {
    const { log } = this.#ports;
    if (error instanceof RuntimeRefused && error.code === IDENTITY_IN_USE) {
      this.#isReplaced = true;
      this.#wake.abort();
      return;
    }
    if (error instanceof RuntimeRefused && error.code === 'AGENT_NOT_REGISTERED') {
      log.warn('the runtime does not know this process; registering again');
      await this.#register().catch(() => undefined);
      return;
    }
    if (!(error instanceof RuntimeUnavailable || error instanceof RuntimeRefused)) throw error;
    this.#failures += 1;
    // Logs failures 1, 2, 4, 8 and so on.
    if (Number.isInteger(Math.log2(this.#failures))) log.warn(error.message, { failures: this.#failures });
  }

  async #retrying(what: string, request: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        await request();
        this.#connected();
        return;
      } catch (error) {
        if (error instanceof RuntimeRefused && error.status !== CONFLICT) {
          throw new AgentError(`the runtime refused to ${what} this agent (${error.code}): ${error.message}`, {
            cause: error,
          });
        }
        await this.#notice(error);
      }
      if (this.#drainReason !== undefined) throw new AgentError(`stopped before the agent could ${what}`);
      await this.#pause();
    }
  }

  async #announceDrain(reason: string): Promise<boolean> {
    try {
      await this.#ports.client.drain({ reason });
      return true;
    } catch (error) {
      await this.#notice(error);
      // An agent that has nothing to do does not wait for a runtime that does not respond.
      return this.#assignments.isIdle;
    }
  }

  async #pause(): Promise<void> {
    const { system } = this.#ports;
    await system.sleep(this.#pauseMs(), this.#wake.signal);
    this.#wake = new AbortController();
  }

  /** A runtime that fails does not make the agent send requests all the time, or none. */
  #pauseMs(): number {
    return Math.min(Math.max(this.#wantedPauseMs(), PAUSE_MS.min), PAUSE_MS.max);
  }

  #wantedPauseMs(): number {
    const { random } = this.#ports.system;
    const isRunning = !this.#assignments.isIdle;
    if (this.#failures > 0) {
      const max = isRunning ? BACKOFF_MS.maxWhileRunning : BACKOFF_MS.max;
      const backoff = Math.min(max, BACKOFF_MS.first * 2 ** Math.min(this.#failures - 1, 10));
      return backoff * (0.5 + random() / 2);
    }
    const { sync_ms, sync_while_running_ms, sync_without_socket_ms } = this.#intervals;
    const isFull = this.#assignments.running().length >= this.#ports.config.slots;
    // With a free slot, the next assignment must be found within the time for its acknowledgement: by a hint or a sync.
    const isInformed = isFull || this.#socket.isOpen;
    if (!isInformed) return sync_without_socket_ms;
    return isRunning ? Math.min(sync_while_running_ms, SYNC_RUNNING_MAX_MS) : sync_ms;
  }

  async #giveUp(): Promise<Ending> {
    this.#ports.log.error('another process uses the identity of this agent; this one stops, with its commands');
    this.#deliveries.stop();
    await this.#assignments.killAll('another process uses the identity of this agent');
    return 'replaced';
  }
}

/** A runtime that sends forged assignments does not make the agent register all the time. */
const ASK_KEYS_EVERY_MS = 60_000;
/** A lease of 30 s survives two lost syncs. */
const SYNC_RUNNING_MAX_MS = 10_000;
