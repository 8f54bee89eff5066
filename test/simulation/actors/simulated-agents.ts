import { type Agent, newAgent } from '../../../lambdas/agents/agent.ts';
import { AssignmentStatement } from '../../../lambdas/agents/protocol.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import type { FaultyCalls } from '../environment/faulty-calls.ts';
import type { Functions } from '../environment/functions.ts';
import type { SeededRandom } from '../environment/seeded-random.ts';
import type { VirtualTime } from '../environment/virtual-time.ts';
import type { AgentInvariants } from '../invariants/agents.ts';
import type { CommandSessionInvariants } from '../invariants/command-sessions.ts';
import type { Situations } from '../situations.ts';
import { AgentProcess } from './agent-process.ts';
import type { SimulatedSessions } from './simulated-sessions.ts';

/** An agent without a socket syncs this often. */
const SYNCS_EVERY_MS = 5_000;
const RESTARTS_AFTER_MS = [500, 70_000] as const;
const RESTARTS_SOON_MS = [500, 8_000] as const;

export interface AgentWorld {
  time: VirtualTime;
  random: SeededRandom;
  faultyCalls: FaultyCalls;
  functions: () => Functions;
  store: MemoryRunStore;
  invariants: AgentInvariants;
  commandSessions: CommandSessionInvariants;
  situations: Situations;
  /** The sessions that are commands of agents. */
  sessions: () => SimulatedSessions | undefined;
  /** No more faults are injected. */
  isCalm: () => boolean;
}

/** How the agents of a scenario behave. */
export interface AgentBehavior {
  perTenant: number;
  slots: number;
  /** How long a command takes. */
  commandMs: readonly [from: number, to: number];
  /** How likely a command fails, an agent refuses an assignment, and a result that was not confirmed is sent again. */
  failureChance: number;
  refusalChance: number;
  /** A crashed agent is started again by systemd, with its disk. Otherwise its host may take a minute, or lose its disk. */
  restartsSoon?: boolean;
  /** When a second process with the identity of an agent starts. */
  secondProcessAfterMs?: number;
}

const EMPTY_DISK: Pick<AgentProcess, 'unreported' | 'journal'> = { unreported: new Map(), journal: new Map() };

/** The hosts of the customer. Each has one agent, which is started again some time after it crashed. */
export class SimulatedAgents {
  readonly #world: AgentWorld;
  readonly #behavior: AgentBehavior;
  readonly #processes: AgentProcess[] = [];
  #boots = 0;

  constructor(world: AgentWorld, behavior: AgentBehavior) {
    this.#world = world;
    this.#behavior = behavior;
  }

  start(tenants: readonly string[]): void {
    for (const tenant of tenants) {
      for (let number = 1; number <= this.#behavior.perTenant; number += 1) {
        const agent = this.#enrol(tenant, `agt_${number}`);
        this.#boot(agent);
      }
    }
    const { secondProcessAfterMs } = this.#behavior;
    if (secondProcessAfterMs === undefined) return;
    this.#world.time.after(secondProcessAfterMs, () => {
      this.#world.situations.record('two processes use one identity');
      const [first] = this.#processes;
      if (first) this.#boot(first.agent);
    });
  }

  #enrol(tenant: string, agentId: string): Agent {
    const at = new Date(this.#world.time.now()).toISOString();
    const agent = newAgent({
      ...{ tenant, agentId, name: agentId, publicKey: '', environments: ['dev', 'staging'], networkSegment: null },
      ...{ enrolledAt: at, enrolledBy: 'olivia' },
    });
    const { slots } = this.#behavior;
    const registration = {
      ...{ bootId: 'boot-0', protocol: 1 as const, agentVersion: '1', capabilities: [], slots, at },
      ...{ environments: [...agent.environments], profiles: ['dev-flex' as const, 'staging-standard' as const] },
      host: { platform: 'linux', arch: 'x64', node: '24' },
    };
    // Not through a port: that agents are enrolled is not part of the simulation.
    this.#world.store.agents.put({ ...agent, registration, lastSyncAt: at });
    return agent;
  }

  /** `disk`: results that the crashed process had stored, and its journal. */
  #boot(agent: Agent, disk: Pick<AgentProcess, 'unreported' | 'journal'> = EMPTY_DISK): void {
    this.#boots += 1;
    const { unreported, journal } = disk;
    const process = new AgentProcess(this.#world, this.#behavior, agent, `boot-${this.#boots}`, unreported, journal);
    this.#processes.push(process);
    process.run((ending) => {
      this.#processes.splice(this.#processes.indexOf(process), 1);
      if (ending === 'replaced') return;
      const { restartsSoon = false } = this.#behavior;
      const disk = this.#world.random.chance(0.5) || restartsSoon ? process : EMPTY_DISK;
      const [from, to] = restartsSoon ? RESTARTS_SOON_MS : RESTARTS_AFTER_MS;
      const afterMs = this.#world.random.between(from, to);
      this.#world.time.after(afterMs, () => this.#boot(agent, disk));
    });
  }

  /**
   * Agents that have nothing to do sync, too, but these syncs are not simulated: they would be most of the events. Before
   * a worker selects an agent, the rows of live agents are as after their last sync.
   */
  keepAlive(tenant: string): void {
    const at = new Date(this.#world.time.now()).toISOString();
    for (const process of this.#processes) {
      if (process.agent.tenant === tenant && process.isIdle) this.#world.store.agents.touch(process.agent, at);
    }
  }

  /** An agent gets an assignment with its next sync. */
  offered(envelope: unknown): void {
    const { payload } = envelope as { payload: string };
    const statement = AssignmentStatement.parse(JSON.parse(Buffer.from(payload, 'base64').toString()));
    for (const process of this.#processes) {
      const { agentId, tenant } = process.agent;
      if (agentId !== statement.agent_id || tenant !== statement.tenant) continue;
      this.#world.time.after(this.#world.random.between(0, SYNCS_EVERY_MS), () => process.wake());
    }
  }
}
