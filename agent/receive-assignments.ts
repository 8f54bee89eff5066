import type * as z from 'zod';
import type { ProfileName } from '../lambdas/agents/agent-terms.ts';
import type { AssignmentStatement, HeartbeatRequest, HeartbeatResponse } from '../lambdas/agents/protocol.ts';
import type { Identity } from './agent-folder.ts';
import type { Deliveries } from './deliver-results.ts';
import { OutputBuffer } from './output-buffer.ts';
import type { CommandReport } from './result-spool.ts';
import { AssignedCommand, type CommandPorts } from './run-command.ts';
import { type RuntimeClient, RuntimeRefused } from './runtime-client.ts';
import { ASSIGNMENT_VARIABLE, killStrays } from './sandbox/command-process.ts';
import { type Refusal, verifyAssignment } from './verify-assignment.ts';

interface Ports extends CommandPorts {
  client: Pick<RuntimeClient, 'output' | 'ack'>;
  identity: Identity;
  profiles: readonly ProfileName[];
}

interface Program {
  /** A slot is free again, or a lease needs a renewal: sync now. */
  syncSoon(): void;
  /** True if the runtime has introduced a new key. */
  askForKeys(): Promise<boolean>;
}

type Sync = z.infer<typeof HeartbeatResponse>;
type Violation = z.infer<typeof HeartbeatRequest>['violations'][number];

const ACK_RETRY_MS = 500;
const VIOLATIONS_MAX = 20;

/** Decides about each assignment that a sync brings: verify, acknowledge, run, report. */
export class ReceiveAssignments {
  readonly #ports: Ports;
  readonly #deliveries: Deliveries;
  readonly #program: Program;
  readonly #commands = new Map<string, AssignedCommand>();
  readonly #runs = new Set<Promise<void>>();
  /** Assignments that are being acknowledged. */
  readonly #pending = new Set<string>();
  #violations: Violation[] = [];
  #isDraining = false;

  constructor(ports: Ports, deliveries: Deliveries, program: Program) {
    this.#ports = ports;
    this.#deliveries = deliveries;
    this.#program = program;
  }

  get isIdle(): boolean {
    return this.#commands.size === 0 && this.#pending.size === 0;
  }

  drain(): void {
    this.#isDraining = true;
  }

  stopAll(reason: string): void {
    for (const command of this.#commands.values()) command.stop({ status: 'canceled', reason });
  }

  /** Ends all commands at once. Resolves when their results are on disk. */
  async killAll(reason: string): Promise<void> {
    for (const command of this.#commands.values()) command.kill(reason);
    await Promise.all(this.#runs);
  }

  /** For the next sync: each of these leases is renewed. */
  running(): { assignment_id: string; lease_version: number }[] {
    return [...this.#commands.values()].map(({ statement: { assignment_id, lease_version } }) => ({
      assignment_id,
      lease_version,
    }));
  }

  takeViolations(): Violation[] {
    return this.#violations.splice(0, VIOLATIONS_MAX);
  }

  /** The sync that should have reported them failed. */
  returnViolations(violations: readonly Violation[]): void {
    this.#violations.unshift(...violations);
  }

  /** After a start: what an earlier process did not finish is reported, and not run again. */
  recover(): void {
    const spooled = this.#deliveries.resume();
    for (const assignment of this.#ports.journal.unfinished()) {
      if (spooled.has(assignment.assignment_id)) continue;
      killStrays({ [ASSIGNMENT_VARIABLE]: assignment.assignment_id });
      const hasStarted = assignment.startedAt !== undefined;
      const reason = hasStarted
        ? 'the agent was restarted while the command ran'
        : 'the agent was restarted before the command started';
      this.#ports.log.warn(reason, { assignment: assignment.assignment_id });
      this.#deliveries.deliver(reportOf(assignment, hasStarted ? 'unknown' : 'never_started', reason));
    }
  }

  apply({ leases, cancels, assignments }: Sync): void {
    for (const { assignment_id, expires_at } of leases) {
      const command = this.#commands.get(assignment_id);
      if (expires_at === null) command?.leaseLost();
      else command?.renew(Date.parse(expires_at));
    }
    for (const { assignment_id, reason } of cancels) {
      this.#commands.get(assignment_id)?.stop({ status: 'canceled', reason: `it was canceled: ${reason}` });
    }
    for (const assignment of assignments) void this.#receive(assignment);
  }

  async #receive({ assignment_id: assignmentId, envelope, traceparent }: Sync['assignments'][number]): Promise<void> {
    if (this.#pending.has(assignmentId) || this.#commands.has(assignmentId)) return;
    this.#pending.add(assignmentId);
    try {
      let verified = this.#verify(assignmentId, envelope);
      const isUnknownKey = 'refusal' in verified && verified.refusal === 'bad_signature';
      if (isUnknownKey && (await this.#program.askForKeys())) verified = this.#verify(assignmentId, envelope);
      if ('refusal' in verified) await this.#refuse(assignmentId, verified);
      else await this.#accept(verified.statement, traceparent);
    } catch (error) {
      // Nothing was started. The runtime withdraws what is not acknowledged.
      this.#ports.log.error('an assignment was dropped', { assignment: assignmentId, error: (error as Error).message });
    } finally {
      this.#pending.delete(assignmentId);
      if (this.#isDraining) this.#program.syncSoon();
    }
  }

  #verify(assignmentId: string, envelope: unknown): { statement: AssignmentStatement } | Refusal {
    const { identity, config, profiles, clock, journal } = this.#ports;
    const context = { identity, config, profiles, now: clock.now(), notBefore: journal.newestIssue };
    const verified = verifyAssignment(assignmentId, envelope, context);
    if ('refusal' in verified) return verified;
    const { statement } = verified;
    const unable = (reason: string): Refusal => ({ refusal: 'unable', reason, leaseVersion: statement.lease_version });
    if (journal.hasSeen(statement)) {
      return { ...unable('this agent has already acknowledged it, or a later lease of the step'), refusal: 'expired' };
    }
    if (clock.isWrong) return unable('the clock of this host is wrong');
    if (this.#isDraining) return unable('the agent is draining');
    if (this.#commands.size + this.#pending.size > config.slots) return unable('the agent has no free slot');
    return verified;
  }

  async #refuse(assignmentId: string, { refusal, reason, rule, leaseVersion }: Refusal): Promise<void> {
    const { client, log } = this.#ports;
    log.warn('refused an assignment', { assignment: assignmentId, refusal, reason });
    if (refusal === 'violation' || refusal === 'bad_signature') {
      this.#violations.push({ assignment_id: assignmentId, rule: rule ?? refusal });
    }
    const body = {
      assignment_id: assignmentId,
      lease_version: leaseVersion,
      accepted: false as const,
      refusal,
      reason: reason.slice(0, 500),
    };
    await client.ack(body).catch((error: Error) => log.warn(error.message, { assignment: assignmentId }));
  }

  async #accept(statement: AssignmentStatement, traceparent?: string): Promise<void> {
    const { journal, clock, log } = this.#ports;
    const { assignment_id, command, sandbox_profile, session_id, step_id } = statement;
    journal.acknowledged(statement, clock.iso());
    const confirmed = await this.#confirmed(statement);
    if (confirmed === 'withdrawn') {
      journal.ended(assignment_id, clock.iso());
      return;
    }
    if (confirmed === 'no response') {
      const reason = 'the runtime did not confirm the acknowledgement in time';
      this.#deliveries.deliver(reportOf(statement, 'never_started', reason));
      return;
    }
    const { leaseUntil, stdin } = confirmed;
    const assigned = new AssignedCommand(statement, leaseUntil, this.#ports, { traceparent, stdin });
    this.#commands.set(assignment_id, assigned);
    log.info('running', {
      assignment: assignment_id,
      run: session_id,
      step: step_id,
      profile: sandbox_profile,
      executable: command.executable,
    });
    const run = this.#run(assigned).finally(() => this.#runs.delete(run));
    this.#runs.add(run);
  }

  /** The end of the lease, and the input of the command. Only the runtime's confirmation lets the command run. */
  async #confirmed({
    assignment_id,
    lease_version,
    start_before,
  }: AssignmentStatement): Promise<{ leaseUntil: number; stdin?: string | undefined } | 'withdrawn' | 'no response'> {
    const { client, clock, log, system } = this.#ports;
    while (clock.now() < Date.parse(start_before)) {
      try {
        const request = { assignment_id, lease_version, accepted: true as const };
        const { confirmed, expires_at, reason, stdin } = await client.ack(request);
        if (confirmed && expires_at !== null) return { leaseUntil: Date.parse(expires_at), stdin };
        log.info('the runtime withdrew an assignment', { assignment: assignment_id, reason });
        return 'withdrawn';
      } catch (error) {
        if (error instanceof RuntimeRefused) {
          log.warn(error.message, { assignment: assignment_id });
          return 'withdrawn';
        }
      }
      await system.sleep(ACK_RETRY_MS);
    }
    return 'no response';
  }

  async #run(assigned: AssignedCommand): Promise<void> {
    const { assignment_id } = assigned.statement;
    const report = await assigned.run();
    const { status, exit_code, execution_ms } = report;
    this.#ports.log.info('ended', {
      assignment: assignment_id,
      status,
      exitCode: exit_code,
      ms: execution_ms,
      reason: report.reason,
    });
    // The lease is renewed until the runtime has the result.
    await this.#deliveries.deliver(report);
    this.#commands.delete(assignment_id);
    this.#program.syncSoon();
  }
}

type Named = Pick<CommandReport, 'assignment_id' | 'lease_version' | 'idempotency_key' | 'sandbox_profile'>;

/** The report of an assignment whose command this process did not run. */
function reportOf(assignment: Named, status: CommandReport['status'], reason: string): CommandReport {
  const { assignment_id, lease_version, idempotency_key, sandbox_profile } = assignment;
  return {
    assignment_id,
    lease_version,
    idempotency_key,
    status,
    exit_code: null,
    signal: null,
    execution_ms: 0,
    sandbox_profile,
    output: new OutputBuffer([], () => '').digest(),
    credentials_used: [],
    violations: [],
    reason,
  };
}
