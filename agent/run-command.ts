import { createHash } from 'node:crypto';
import type { ProfileName } from '../lambdas/agents/agent-terms.ts';
import type { AssignmentStatement } from '../lambdas/agents/protocol.ts';
import { redact } from '../lambdas/agents/redact.ts';
import type { AgentLog } from './agent-log.ts';
import { type AgentConfig, profileConfig, secretFiles } from './config.ts';
import { CredentialUnavailable } from './credentials/credential-source.ts';
import { HeldCredentials } from './credentials/held-credentials.ts';
import type { Journal } from './journal.ts';
import { OutputBuffer } from './output-buffer.ts';
import { OutputSender } from './output-sender.ts';
import type { CommandReport } from './result-spool.ts';
import type { RuntimeClient } from './runtime-client.ts';
import {
  ASSIGNMENT_VARIABLE,
  type CommandEnd,
  type CommandProcess,
  endedByFilter,
  startCommand,
} from './sandbox/command-process.ts';
import { type CommandUser, notExecutable } from './sandbox/command-user.ts';
import { ISOLATION } from './sandbox/isolation.ts';
import { FIRST_OWN_DESCRIPTOR, sandboxedCommand } from './sandbox/sandboxed-command.ts';
import type { ServerClock } from './server-clock.ts';
import type { System } from './system.ts';

export interface CommandPorts {
  client: Pick<RuntimeClient, 'output'>;
  config: AgentConfig;
  /** Who runs commands; undefined: the user of the agent. */
  user: CommandUser | undefined;
  /** Commands must not see it. */
  agentFolder: string;
  journal: Journal;
  clock: ServerClock;
  system: System;
  log: AgentLog;
}

/** Why the agent ends a command. */
type Stop = { status: 'canceled' | 'timed_out'; reason: string };

/** A command gets this long to end after SIGTERM. */
const GRACE_MS = 5_000;
/** A command is ended this long before its lease ends, because another agent may undo it after that. */
const LEASE_MARGIN_MS = 2_000;
/** A session must not show its token in its output. */
const SESSION_TOKEN = /cst_[\w.-]+/g;
/** What every command sees, in addition to its credentials. */
const ENVIRONMENT = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LANG: 'C.UTF-8',
  HOME: '/tmp',
};

/** One acknowledged assignment: runs its command once, and reports how it ended. */
export class AssignedCommand {
  readonly statement: AssignmentStatement;
  readonly #ports: CommandPorts;
  readonly #traceparent: string | undefined;
  readonly #stdin: string | undefined;
  readonly #buffer: { current?: OutputBuffer } = {};
  #leaseUntil: number;
  #process: CommandProcess | undefined;
  #sender: OutputSender | undefined;
  #stop: Stop | undefined;
  readonly #ended = new AbortController();

  constructor(
    statement: AssignmentStatement,
    leaseUntil: number,
    ports: CommandPorts,
    { traceparent, stdin }: { traceparent?: string | undefined; stdin?: string | undefined } = {},
  ) {
    this.statement = statement;
    this.#traceparent = traceparent;
    this.#stdin = stdin;
    this.#leaseUntil = leaseUntil;
    this.#ports = ports;
  }

  renew(leaseUntil: number): void {
    this.#leaseUntil = leaseUntil;
  }

  /** The runtime no longer waits for the result. */
  leaseLost(): void {
    this.#sender?.stop();
    this.stop({ status: 'canceled', reason: 'the lease was lost' });
  }

  /** Asks the command to end, and ends it after a while. The first reason counts. */
  stop(stop: Stop): void {
    if (this.#stop || this.#ended.signal.aborted) return;
    this.#stop = stop;
    this.#ports.log.warn('stopping the command', { assignment: this.statement.assignment_id, reason: stop.reason });
    this.#sender?.status(`\ncountersign: stopped because ${stop.reason}\n`);
    this.#process?.terminate();
    void this.#ports.system.sleep(GRACE_MS, this.#ended.signal).then(() => this.#process?.kill());
  }

  /** Ends the command at once, with everything that it started. One that has not started yet does not start. */
  kill(reason: string): void {
    this.#stop ??= { status: 'canceled', reason };
    // After its end, another process of the host may have its id.
    if (!this.#ended.signal.aborted) this.#process?.kill();
  }

  async run(): Promise<CommandReport> {
    const { config, system } = this.#ports;
    const credentials = new HeldCredentials(config, system, FIRST_OWN_DESCRIPTOR);
    const result = await this.#runWith(credentials).catch((cause: Error) => {
      // Errors of Node.js may show the values with which it was called.
      const error = redact(cause.message, credentials.secrets);
      this.#ports.log.error('the command could not be run', { assignment: this.statement.assignment_id, error });
      return this.#started ? { ...neverStarted(error), status: 'unknown' as const } : neverStarted(error);
    });
    const used = await credentials.release();
    this.#ended.abort();
    return this.#report(result, used);
  }

  get #started(): boolean {
    return this.#process !== undefined;
  }

  async #runWith(credentials: HeldCredentials): Promise<Result> {
    const { statement } = this;
    const { clock, journal, system } = this.#ports;
    try {
      await credentials.fetch(statement.credentials);
    } catch (error) {
      if (error instanceof CredentialUnavailable) return neverStarted(error.message);
      throw error;
    }
    const obstacle = this.#obstacle();
    if (obstacle !== undefined) return neverStarted(obstacle);
    const sandboxed = this.#sandboxed(credentials);
    const secrets = [...credentials.secrets, ...(this.#stdin?.match(SESSION_TOKEN) ?? [])];
    const buffer = new OutputBuffer(secrets, () => clock.iso());
    this.#buffer.current = buffer;
    this.#sender = new OutputSender(buffer, (chunks) => this.#send(chunks), system);
    // From here on the command counts as started, even if the agent crashes before it starts.
    journal.started(statement.assignment_id, clock.iso());
    const startedAt = system.monotonic();
    this.#process = startCommand(sandboxed, this.#environment(credentials), this.#stdin);
    this.#sender.attach('stdout', this.#process.stdout);
    this.#sender.attach('stderr', this.#process.stderr);
    void this.#watchTimeout();
    void this.#watchLease();
    const end = await this.#process.ended;
    const executionMs = Math.round(system.monotonic() - startedAt);
    this.#ended.abort();
    await this.#sender.finish();
    return this.#resultOf(end, executionMs);
  }

  /** Why the command must not start now. */
  #obstacle(): string | undefined {
    const { clock } = this.#ports;
    const { start_before, command } = this.statement;
    if (this.#stop) return this.#stop.reason;
    if (!this.#inputIsSigned) return 'its input is not the one that was signed';
    if (clock.now() >= Date.parse(start_before)) return `it had to start before ${start_before}`;
    if (clock.now() >= this.#leaseUntil - LEASE_MARGIN_MS) return 'its lease ended before it could start';
    return notExecutable(command.executable, this.#ports.user);
  }

  get #inputIsSigned(): boolean {
    const hash = this.#stdin === undefined ? undefined : createHash('sha256').update(this.#stdin).digest('hex');
    return hash === this.statement.stdin_sha256;
  }

  #sandboxed({ inputs }: HeldCredentials) {
    const { sandbox_profile: profile, command } = this.statement;
    const { config, agentFolder, user } = this.#ports;
    const { limits, writable, hidden } = profileConfig(config, profile);
    return sandboxedCommand(profile, command, {
      limits,
      writable,
      hidden: [...hidden, agentFolder, ...secretFiles(config)],
      inputs,
      user,
    });
  }

  #environment({ environment }: HeldCredentials): Record<string, string> {
    const { assignment_id, session_id, step_id } = this.statement;
    const own = { COUNTERSIGN_RUN: session_id, COUNTERSIGN_STEP: step_id, [ASSIGNMENT_VARIABLE]: assignment_id };
    // Programs that are traced continue the trace of the run.
    const trace = this.#traceparent !== undefined && { TRACEPARENT: this.#traceparent };
    return { ...ENVIRONMENT, ...trace, ...environment, ...own };
  }

  #send(chunks: Parameters<RuntimeClient['output']>[0]['chunks']) {
    const { assignment_id, lease_version } = this.statement;
    return this.#ports.client.output({ assignment_id, lease_version, chunks });
  }

  async #watchTimeout(): Promise<void> {
    const { timeout_seconds } = this.statement;
    await this.#ports.system.sleep(timeout_seconds * 1000, this.#ended.signal);
    if (!this.#ended.signal.aborted) {
      this.stop({ status: 'timed_out', reason: `it ran longer than ${timeout_seconds} s` });
    }
  }

  /** Without a connection the lease is not renewed. The command is ended before the runtime may declare it lost. */
  async #watchLease(): Promise<void> {
    const { clock, system } = this.#ports;
    while (!this.#ended.signal.aborted) {
      const left = this.#leaseUntil - LEASE_MARGIN_MS - GRACE_MS - clock.now();
      if (left <= 0) {
        this.leaseLost();
        return;
      }
      await system.sleep(left, this.#ended.signal);
    }
  }

  #resultOf(end: CommandEnd, executionMs: number): Result {
    if (end.neverStarted) return neverStarted('the sandbox could not be created; run: countersign agent doctor');
    const { exitCode, signal } = end;
    const status = this.#stop?.status ?? (exitCode === 0 ? 'succeeded' : 'failed');
    const reason = this.#stop?.reason;
    return {
      status,
      exitCode,
      signal,
      executionMs,
      violations: isFiltered(this.statement.sandbox_profile) && endedByFilter(end) ? ['seccomp'] : [],
      ...(reason && { reason }),
    };
  }

  #report(
    { status, exitCode, signal, executionMs, violations, reason }: Result,
    used: CommandReport['credentials_used'],
  ): CommandReport {
    const { assignment_id, lease_version, idempotency_key, sandbox_profile } = this.statement;
    return {
      assignment_id,
      lease_version,
      idempotency_key,
      status,
      exit_code: exitCode,
      signal,
      execution_ms: executionMs,
      sandbox_profile,
      output: (this.#buffer.current ?? new OutputBuffer([], () => '')).digest(),
      credentials_used: used,
      violations,
      ...(reason !== undefined && { reason: reason.slice(0, 500) }),
    };
  }
}

/** Without a filter, its exit code is one like any other. */
const isFiltered = (profile: ProfileName): boolean => ISOLATION[profile].kind === 'namespaces';

interface Result {
  status: CommandReport['status'];
  exitCode: number | null;
  signal: string | null;
  executionMs: number;
  violations: string[];
  reason?: string;
}

const neverStarted = (reason: string): Result => ({
  status: 'never_started',
  exitCode: null,
  signal: null,
  executionMs: 0,
  violations: [],
  reason,
});
