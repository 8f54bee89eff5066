import { createPublicKey, verify } from 'node:crypto';
import { type Agent, newAgent } from '../../../lambdas/agents/agent.ts';
import { registerAgent } from '../../../lambdas/agents/agent-lifecycle.ts';
import type { AgentCaller, SyncResult } from '../../../lambdas/agents/agent-requests.ts';
import { ASSIGNMENT_PAYLOAD_TYPE } from '../../../lambdas/agents/agent-terms.ts';
import { ProfileDefinition } from '../../../lambdas/agents/profiles.ts';
import {
  AckRequest,
  AssignmentStatement,
  CompleteRequest,
  HeartbeatRequest,
  RegisterRequest,
} from '../../../lambdas/agents/protocol.ts';
import { isoNow } from '../../../lambdas/entry/ports.ts';
import { preAuthEncoding } from '../../../lambdas/evidence/signing/dsse.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { acknowledgeAssignment } from '../../../lambdas/worker/agent/acknowledge-assignment.ts';
import { completeAssignment } from '../../../lambdas/worker/agent/complete-assignment.ts';
import { syncAgent } from '../../../lambdas/worker/agent/sync-agent.ts';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { GovernedWorkshop } from '../governance/governed-workshop.ts';

const TENANT = 'acme';
export const SHA = 'a'.repeat(64);
export const RESTART = '/usr/bin/systemctl';

type Overrides<T> = { [Field in keyof T]?: T[Field] };

/** One process of an agent, which calls the use cases as the agent API does. */
export class TestAgent {
  readonly #shop: AgentWorkshop;
  readonly agentId: string;
  readonly bootId: string;

  constructor(shop: AgentWorkshop, agentId: string, bootId: string) {
    this.#shop = shop;
    this.agentId = agentId;
    this.bootId = bootId;
  }

  async row(): Promise<Agent> {
    const row = await this.#shop.runs.agents.agent(TENANT, this.agentId);
    if (!row) throw new Error(`${this.agentId} is not enrolled`);
    return row;
  }

  async caller(): Promise<AgentCaller> {
    return { agent: await this.row(), bootId: this.bootId };
  }

  async register(differing: Overrides<typeof RegisterRequest._zod.input> = {}): Promise<this> {
    const request = RegisterRequest.parse({
      ...{ protocol: 1, agent_version: '1.0.0', boot_id: this.bootId, capabilities: ['ssh'] },
      ...{ environments: ['prod', 'staging', 'dev'], slots: 2, host: { platform: 'linux', arch: 'x64', node: '24' } },
      profiles: ['prod-critical', 'prod-standard', 'staging-standard', 'dev-flex'],
      ...differing,
    });
    await registerAgent({ agents: this.#shop.runs.agents, clock: this.#shop.clock }, await this.caller(), request);
    return this;
  }

  async sync(running: AssignmentStatement[] = [], differing: object = {}): Promise<SyncResult> {
    const request = HeartbeatRequest.parse({
      ...{ boot_id: this.bootId, socket: false, violations: [], ...differing },
      running: running.map(({ assignment_id, lease_version }) => ({ assignment_id, lease_version })),
    });
    return syncAgent(this.#shop.worker, await this.caller(), request);
  }

  /** Syncs, and returns the statements of the assignments, with their signatures checked. */
  async offers(): Promise<AssignmentStatement[]> {
    const { assignments } = await this.sync();
    return assignments.map(({ envelope }) => this.#shop.verified(envelope));
  }

  async offer(): Promise<AssignmentStatement> {
    const [statement, ...more] = await this.offers();
    if (!statement || more.length > 0) throw new Error(`${this.agentId} has ${more.length} more or no assignments`);
    return statement;
  }

  async ack({ assignment_id, lease_version }: AssignmentStatement, refusal?: object) {
    const request = AckRequest.parse({ assignment_id, lease_version, accepted: refusal === undefined, ...refusal });
    return acknowledgeAssignment(this.#shop.worker, await this.caller(), request);
  }

  async complete(statement: AssignmentStatement, differing: Overrides<typeof CompleteRequest._zod.input> = {}) {
    const { assignment_id, lease_version, idempotency_key, sandbox_profile } = statement;
    const request = CompleteRequest.parse({
      ...{ assignment_id, lease_version, idempotency_key, sandbox_profile, status: 'succeeded', exit_code: 0 },
      ...{ signal: null, execution_ms: 1_200, violations: [], credentials_used: [] },
      output: { sha256: SHA, bytes: 42, chunks: 1, dropped_bytes: 0 },
      ...differing,
    });
    return completeAssignment(this.#shop.worker, await this.caller(), request);
  }

  /** Syncs, acknowledges and returns the statement. */
  async take(): Promise<AssignmentStatement> {
    const statement = await this.offer();
    const { confirmed, reason } = await this.ack(statement);
    if (!confirmed) throw new Error(`not confirmed: ${reason}`);
    return statement;
  }
}

/** A workshop with agents, in which everything may run and policy allows everything unless a test says otherwise. */
export class AgentWorkshop extends GovernedWorkshop {
  async openWithAgents(...names: string[]): Promise<TestAgent[]> {
    await this.open();
    this.policy.decision = () => ALLOWED;
    const any = [RESTART, '/usr/bin/uptime', '/opt/undo'].map((executable) => ({ executable }));
    for (const name of ['prod-standard', 'prod-critical', 'staging-standard'] as const) {
      await this.definitions.saveProfile(TENANT, ProfileDefinition.parse({ name, allow: any }));
    }
    return Promise.all(names.map((name) => this.enrol(name)));
  }

  async enrol(name: string, differing: Partial<Agent> = {}): Promise<TestAgent> {
    const agent = newAgent({
      ...{ tenant: TENANT, agentId: `agt_${name}`, name, publicKey: 'x', environments: ['prod', 'staging', 'dev'] },
      ...{ networkSegment: null, enrolledAt: isoNow(this.clock), enrolledBy: 'olivia' },
    });
    await this.runs.agents.create({ ...agent, ...differing });
    return new TestAgent(this, agent.agentId, `boot-${name}-1`).register();
  }

  process(of: TestAgent, bootId: string): TestAgent {
    return new TestAgent(this, of.agentId, bootId);
  }

  /** Delivers all messages that are due, while time passes second by second; agents that are named here sync. */
  async pass(seconds: number, ...syncing: (TestAgent | [TestAgent, AssignmentStatement])[]): Promise<void> {
    await this.deliver();
    for (let second = 1; second <= seconds; second += 1) {
      this.clock.advance(1_000);
      for (const each of second % 10 === 0 ? syncing : []) {
        const [agent, ...running] = Array.isArray(each) ? each : [each];
        await agent.sync(running);
      }
      await this.deliver();
    }
  }

  async deliver(): Promise<void> {
    for (let due = this.queue.receive(); due.length > 0; due = this.queue.receive()) {
      for (const message of due) await this.work(message);
    }
  }

  /** Begins a run and processes it until its first command is offered. */
  async start(yaml: string): Promise<StepMessage> {
    const message = await this.begin(yaml);
    await this.work(message);
    return message;
  }

  verified(envelope: unknown): AssignmentStatement {
    const { payload, payloadType, signatures } = envelope as {
      payload: string;
      payloadType: string;
      signatures: { sig: string }[];
    };
    const body = Buffer.from(payload, 'base64');
    const key = createPublicKey(this.signer.publicKey.export({ type: 'spki', format: 'pem' }));
    const isValid = verify(
      null,
      preAuthEncoding(ASSIGNMENT_PAYLOAD_TYPE, body),
      key,
      Buffer.from(signatures[0]?.sig ?? '', 'base64'),
    );
    if (payloadType !== ASSIGNMENT_PAYLOAD_TYPE || !isValid) throw new Error('the statement is not signed');
    return AssignmentStatement.parse(JSON.parse(body.toString()));
  }

  assignments() {
    return [...this.runs.agents.inside.assignments()];
  }
}
