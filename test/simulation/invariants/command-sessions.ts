import type { AssignmentStatement } from '../../../lambdas/agents/protocol.ts';
import type { Clock } from '../../../lambdas/entry/ports.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import type { RunChange } from '../../../lambdas/run/commit.ts';
import type { CommitEvent } from '../../../lambdas/run/events/events.ts';
import { isTerminal } from '../../../lambdas/run/run.ts';
import { hasOpenSession, type SessionFacts } from '../../../lambdas/run/session.ts';
import { receiptKeyOf, type Step } from '../../../lambdas/run/step.ts';
import { isSessionToken, openSessionToken } from '../../../lambdas/run-changes/session/session-token.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import type { Situations } from '../situations.ts';
import type { Report } from './report.ts';
import type { Snapshot } from './run-history.ts';

/** Messages that are not lost arrive within this time. */
const SOON_MS = 60_000;
const STRINGS = /"[^"\\]*"/g;

interface Known {
  time: Clock;
  situations: Situations;
  /** No operator has paused the run of a session. */
  noCommands: boolean;
  secret: string;
  /** A session was started, by its receipt. */
  onStarted: (tenant: string, receiptKey: string) => void;
}

/** One session that is a command. */
interface CommandSession {
  tenant: string;
  runId: string;
  stepIndex: number;
  completionId: string;
  /** What its command has read. */
  stdin?: string;
  /** When the run of its command has ended. */
  commandEndedAtMs?: number;
  /** When its step has ended, and whether it has completed. */
  closed?: { atMs: number; isCompleted: boolean };
}

/** A session on an enrolled agent is one command, with one prompt under the signed hash, and both end together. */
export class CommandSessionInvariants {
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  readonly #known: Known;
  /** By tenant and the run of the command, which has the id of the session. */
  readonly #sessions = new Map<string, CommandSession>();
  /** The permissions to start a session that were used. */
  readonly #starts = new Set<string>();

  constructor(report: Report, store: MemoryRunStore, known: Known) {
    this.#report = report;
    this.#store = store;
    this.#known = known;
  }

  committed(change: RunChange, before: Snapshot): void {
    const { run, commit, steps } = change;
    const started = commit.events.filter((event) => event.type === 'session.started');
    for (const event of started) this.#checkStarted(event, change);
    const own = this.#sessions.get(`${run.tenant} ${run.runId}`);
    if (own && isTerminal(run)) own.commandEndedAtMs ??= this.#known.time.now();
    for (const { step } of steps) this.#close(run.tenant, step);
    for (const event of commit.events) if (event.type === 'session.lost') this.#checkLost(event, run.tenant, before);
    if (own || this.#hasSession(change)) this.#checkNoToken(change, run.runId);
  }

  #hasSession = ({ steps }: RunChange) => steps.some(({ step }) => step.session?.isCommand);

  /** One commit records the session and creates its command, once for each permission to start it. */
  #checkStarted({ step: id, index }: CommitEvent & { type: 'session.started' }, change: RunChange): void {
    const { run, creates } = change;
    const { tenant, runId } = run;
    const step = change.steps.find((each) => each.step.index === index)?.step;
    if (!step?.session?.isCommand) return;
    const { sessionId, completionId } = step.session;
    const starts = creates?.trigger.action?.session;
    const isOwn = creates?.run.runId === sessionId && starts?.prompt.data.completion_id === completionId;
    if (!isOwn || starts?.stepIndex !== index) {
      this.#report('a session is recorded together with its command', `${runId}/${id}`);
    }
    const events = this.#store.inside.commits(tenant, runId).flatMap((commit) => commit.events);
    const retries = events.filter((event) => event.type === 'step.retry_requested' && event.step === id).length;
    const permission = `${tenant} ${runId} ${id} ${retries}`;
    if (this.#starts.has(permission)) this.#report('a step starts one session', permission);
    this.#starts.add(permission);
    this.#sessions.set(`${tenant} ${sessionId}`, { tenant, runId, stepIndex: index, completionId });
    this.#known.onStarted(tenant, receiptKeyOf(step) ?? '');
  }

  #of = (tenant: string, session: SessionFacts | undefined): CommandSession | undefined =>
    session?.isCommand && this.#sessions.get(`${tenant} ${session.sessionId}`);

  #close(tenant: string, step: Step): void {
    const session = this.#of(tenant, step.session);
    if (!session || hasOpenSession(step)) return;
    session.closed ??= { atMs: this.#known.time.now(), isCompleted: step.session?.completion !== undefined };
  }

  /** Nobody gives up a session whose command still runs, unless it gave no sign of life for long. */
  #checkLost({ index, step, because }: CommitEvent & { type: 'session.lost' }, tenant: string, before: Snapshot): void {
    const was = before.steps.find((each) => each.index === index);
    const session = this.#of(tenant, was?.session);
    if (session && because !== 'silent' && session.commandEndedAtMs === undefined) {
      this.#report('a session is lost only after its command has ended', `${session.runId}/${step}: ${because}`);
    }
  }

  /** Nobody who reads the table can act as the session. */
  #checkNoToken(change: RunChange, runId: string): void {
    const stored = JSON.stringify(change).match(STRINGS) ?? [];
    if (stored.some((text) => isSessionToken(text.slice(1))))
      this.#report('the token of a session is not stored', runId);
  }

  /** An agent may start the command of a statement, and has got what the command shall read. */
  acknowledged({ assignment_id, stdin_sha256 }: AssignmentStatement, stdin: string | undefined): void {
    const hash = stdin === undefined ? undefined : sha256Hex(stdin);
    if (hash !== stdin_sha256) this.#report('a command reads what its signed statement names', assignment_id);
  }

  /** An agent has started a command. */
  started({ tenant, session_id, assignment_id }: AssignmentStatement, stdin: string | undefined): void {
    const session = this.#sessions.get(`${tenant} ${session_id}`);
    if (!session && stdin === undefined) return;
    const { run_id, completion_id, token } = stdin === undefined ? {} : JSON.parse(stdin).data;
    const { runId, stepIndex } = openSessionToken(String(token), this.#known.secret, '') ?? {};
    const isOwn = run_id === session?.runId && runId === session?.runId && stepIndex === session?.stepIndex;
    if (!session || !isOwn || completion_id !== session.completionId) {
      this.#report('the command of a session reads its own prompt', assignment_id);
      return;
    }
    session.stdin ??= stdin;
    if (session.stdin !== stdin) this.#report('a repeated start says the same', assignment_id);
    this.#known.situations.record('a session is a command of an agent');
  }

  /** Without faults, a command ends soon after its session, and a session soon after its command. */
  checkFinal(hadFaults: boolean): void {
    if (hadFaults) return;
    for (const [id, { tenant, closed, commandEndedAtMs = Number.POSITIVE_INFINITY }] of this.#sessions) {
      if (!closed || closed.isCompleted) continue;
      const command = this.#store.inside.run(tenant, id.slice(tenant.length + 1));
      const isStopped = command?.stopRequest !== undefined || command?.status === 'canceled';
      if (commandEndedAtMs > closed.atMs + SOON_MS && !isStopped) {
        this.#report('the command of a session is stopped with it', id);
      }
      if (closed.atMs > commandEndedAtMs + SOON_MS && this.#known.noCommands) {
        this.#report('a session ends soon after its command', id);
      }
    }
  }
}
