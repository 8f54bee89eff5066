import type { Assignment } from '../agents/assignment.ts';
import { stepIndexIn } from '../run/approval.ts';
import type { Commit } from '../run/commit.ts';
import type { CommitEvent, EventOf } from '../run/events/events.ts';
import { isAgentTool } from '../run/lease.ts';
import type { TerminalRun } from '../run/run.ts';
import { UNDO_INDEX_OFFSET } from '../run/step.ts';
import {
  attemptSpan,
  parseTraceparent,
  RUN_SPAN,
  sessionSpan,
  spanIdOf,
  stepSpan,
  traceIdOf,
} from './trace-context.ts';

type Attributes = Record<string, string | number | boolean>;

export interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  /** `server`: it was requested from outside. `client`: it requests something outside. */
  kind: 'internal' | 'server' | 'client';
  fromMs: number;
  toMs: number;
  attributes: Attributes;
  /** The code of the error with which it ended. */
  error?: string;
}

/** What a trace is made of: the run, its commits, and the assignments of its commands. */
export interface Traced {
  run: TerminalRun;
  commits: readonly Commit[];
  assignments: readonly Assignment[];
}

const CREATE = 'session.create';
const ROLLBACK = 'rollback.execute';

/**
 * The trace of an ended run. It is made from its commits, which have the time of every transition, so it costs the hot path
 * nothing. The same run always gives the same spans:
 *
 *   run ─┬─ session.create                     from the webhook to the first work
 *        ├─ step.execute ─┬─ policy.decide
 *        │                ├─ approval.wait
 *        │                ├─ connector.request   one for each attempt; its id is in `traceparent` at the target
 *        │                ├─ step.attempt ─ worker.assign, vault.fetch, agent.command
 *        │                └─ agent.session
 *        └─ rollback.execute ── step.execute
 */
export function spansOf({ run, commits, assignments }: Traced): Span[] {
  const trace = new Trace(run);
  for (const { at, events } of commits) for (const event of events) trace.take(event, Date.parse(at));
  for (const assignment of assignments) trace.takeAssignment(assignment);
  return trace.finish();
}

interface Open {
  name: string;
  parent: string;
  kind?: Span['kind'];
  fromMs: number;
  attributes: Attributes;
}

type Handlers = { [Type in CommitEvent['type']]?: (event: EventOf<Type>, atMs: number) => void };

class Trace {
  readonly #run: TerminalRun;
  readonly #spans: Span[] = [];
  readonly #open = new Map<string, Open>();
  /** The span of each step, and of its last attempt. A step that is retried by hand has another span. */
  readonly #steps = new Map<number, { key: string; started: number; decisions: number }>();
  readonly #attempts = new Map<number, string>();
  #isRollingBack = false;

  constructor(run: TerminalRun) {
    this.#run = run;
    const { source, event } = run.trigger;
    const fromMs = Date.parse(run.createdAt);
    const attributes = { 'countersign.source': source, 'countersign.event': event };
    this.#open.set(CREATE, { name: CREATE, parent: RUN_SPAN, fromMs, attributes });
    if (run.rollbackOf) this.#beginRollback(fromMs);
  }

  /** The events that begin or end a span. */
  readonly #handlers: Handlers = {
    'run.enriched': (_event, atMs) => this.#end(CREATE, atMs),
    'run.status_changed': ({ from, to, error }, atMs) => {
      if (to === 'rolling_back') this.#beginRollback(atMs);
      else if (from === 'rolling_back') this.#end(ROLLBACK, atMs, {}, error?.code);
    },
    'policy.decided': (event, atMs) => this.#decide(event, atMs),
    'approval.requested': (event, atMs) => this.#requestApproval(event, atMs),
    'approval.decided': ({ approvalId, status }, atMs) =>
      this.#end(approvalId, atMs, { 'countersign.decision': status }),
    'approval.expired': ({ approvalId }, atMs) => this.#end(approvalId, atMs, { 'countersign.decision': 'expired' }),
    'approval.canceled': ({ approvalId }, atMs) => this.#end(approvalId, atMs, { 'countersign.decision': 'canceled' }),
    'step.claimed': (event, atMs) => this.#claim(event, atMs),
    'step.waiting': (event, atMs) => this.#stepOf(event, atMs, { 'countersign.awaits': event.awaits }),
    'step.assigned': (event, atMs) => this.#end(assignKey(event), atMs, { 'countersign.agent': event.agent }),
    'step.unassigned': ({ index, because }, atMs) => this.#endAttempt(index, atMs, because.toUpperCase()),
    'session.started': (event, atMs) => this.#beginSession(event, atMs),
    'session.completed': ({ index, outcome }, atMs) =>
      this.#end(sessionSpan(index), atMs, { 'countersign.outcome': outcome }),
    'session.lost': ({ index, because }, atMs) => this.#end(sessionSpan(index), atMs, {}, because.toUpperCase()),
    'step.retry_scheduled': ({ index, error }, atMs) => this.#endAttempt(index, atMs, error.code),
    'step.succeeded': (event, atMs) =>
      this.#endStep(event, atMs, undefined, event.skipped && { 'countersign.skipped': true }),
    'step.canceled': (event, atMs) => this.#endStep(event, atMs, undefined, { 'countersign.canceled': true }),
    'step.failed': (event, atMs) => this.#endStep(event, atMs, event.error.code),
  };

  take(event: CommitEvent, atMs: number): void {
    const handle = this.#handlers[event.type] as ((event: CommitEvent, atMs: number) => void) | undefined;
    handle?.(event, atMs);
  }

  /** The start of a session is one request; afterwards the step waits for its completion. */
  #beginSession(event: EventOf<'session.started'>, atMs: number): void {
    const { key } = this.#stepOf(event, atMs);
    this.#endAttempt(event.index, atMs);
    const attributes = { 'countersign.configuration': event.configuration };
    this.#open.set(sessionSpan(event.index), { name: 'agent.session', parent: key, fromMs: atMs, attributes });
  }

  /** The span of the step, which begins with the first event of the step. */
  #stepOf({ step, index }: { step: string; index: number }, atMs: number, attributes: Attributes = {}) {
    const known = this.#steps.get(index);
    const open = known && this.#open.get(known.key);
    if (open) Object.assign(open.attributes, attributes);
    if (known && open) return known;
    const started = (known?.started ?? 0) + 1;
    const key = started === 1 ? stepSpan(index) : `${stepSpan(index)} again ${started}`;
    const isUndo = index >= UNDO_INDEX_OFFSET;
    const parent = isUndo && this.#isRollingBack ? ROLLBACK : RUN_SPAN;
    const number = isUndo ? index - UNDO_INDEX_OFFSET : index;
    this.#open.set(key, {
      ...{ name: 'step.execute', parent, fromMs: atMs },
      attributes: {
        ...{ 'countersign.step': step, 'countersign.step_number': number + 1 },
        ...(isUndo && { 'countersign.undo': true }),
        ...attributes,
      },
    });
    const begun = { key, started, decisions: known?.decisions ?? 0 };
    this.#steps.set(index, begun);
    return begun;
  }

  /** A decision takes no time that commits know, so its span is a point in time. */
  #decide(event: EventOf<'policy.decided'>, atMs: number): void {
    const { index, tool, target, verdict, policies } = event;
    const step = this.#stepOf(event, atMs, { 'countersign.tool': tool });
    step.decisions += 1;
    this.#add(`policy.decide ${index} ${step.decisions}`, { parent: step.key, name: 'policy.decide' }, atMs, atMs, {
      ...{ 'countersign.tool': tool, 'countersign.target': target, 'countersign.verdict': verdict },
      'countersign.policies': policies.join(' '),
    });
  }

  #requestApproval({ step, approvalId, asks, tier, quorum }: EventOf<'approval.requested'>, atMs: number): void {
    const { key } = this.#stepOf({ step, index: stepIndexIn(approvalId) }, atMs);
    this.#open.set(approvalId, {
      ...{ name: 'approval.wait', parent: key, fromMs: atMs },
      attributes: {
        ...{ 'countersign.approval': approvalId, 'countersign.asks': asks },
        ...{ 'countersign.tier': tier, 'countersign.quorum': quorum },
      },
    });
  }

  #claim(event: EventOf<'step.claimed'>, fromMs: number): void {
    const { index, tool, attempt, leaseVersion } = event;
    this.#endAttempt(index, fromMs, 'LEASE_LOST');
    const { key: parent } = this.#stepOf(event, fromMs, { 'countersign.tool': tool });
    const key = attemptSpan(index, leaseVersion);
    this.#attempts.set(index, key);
    const attributes = { 'countersign.tool': tool, 'countersign.attempt': attempt };
    if (!isAgentTool(tool)) {
      this.#open.set(key, { name: 'connector.request', kind: 'client', parent, fromMs, attributes });
      return;
    }
    this.#open.set(key, { name: 'step.attempt', parent, fromMs, attributes });
    this.#open.set(assignKey(event), { name: 'worker.assign', parent: key, fromMs, attributes: {} });
  }

  #endAttempt(index: number, atMs: number, error?: string): void {
    const key = this.#attempts.get(index);
    if (key === undefined) return;
    for (const [child, { parent }] of [...this.#open]) if (parent === key) this.#end(child, atMs, {}, error);
    this.#end(key, atMs, {}, error);
  }

  #endStep(event: { step: string; index: number }, atMs: number, error?: string, attributes: Attributes = {}): void {
    const { key } = this.#stepOf(event, atMs);
    this.#endAttempt(event.index, atMs, error);
    this.#end(sessionSpan(event.index), atMs, {}, error);
    this.#end(key, atMs, attributes, error);
  }

  #beginRollback(fromMs: number): void {
    this.#isRollingBack = true;
    this.#open.set(ROLLBACK, { name: ROLLBACK, parent: RUN_SPAN, fromMs, attributes: {} });
  }

  /** The agent fetches credentials one after the other, and then runs the command. */
  takeAssignment({ stepIndex, leaseVersion, agentName, acknowledgedAt, result }: Assignment): void {
    if (!result || acknowledgedAt === undefined) return;
    let fromMs = Date.parse(acknowledgedAt);
    const parent = attemptSpan(stepIndex, leaseVersion);
    for (const [number, { source, fetchMs }] of result.credentialsUsed.entries()) {
      const key = `vault.fetch ${stepIndex}.${leaseVersion}.${number}`;
      const attributes = { 'countersign.credential_source': source };
      this.#add(key, { parent, name: 'vault.fetch' }, fromMs, fromMs + fetchMs, attributes);
      fromMs += fetchMs;
    }
    const { durationMs, profile, status, exitCode } = result;
    const key = `agent.command ${stepIndex}.${leaseVersion}`;
    const attributes = {
      ...{ 'countersign.agent_name': agentName, 'countersign.profile': profile, 'countersign.status': status },
      ...(exitCode !== null && { 'countersign.exit_code': exitCode }),
    };
    const error = status === 'succeeded' ? undefined : status.toUpperCase();
    this.#add(key, { parent, name: 'agent.command' }, fromMs, fromMs + durationMs, attributes, error);
  }

  #end(key: string, toMs: number, attributes: Attributes = {}, error?: string): void {
    const open = this.#open.get(key);
    if (!open) return;
    this.#open.delete(key);
    this.#add(key, open, open.fromMs, toMs, { ...open.attributes, ...attributes }, error);
  }

  #add(
    key: string,
    { parent, name, kind = 'internal' }: Pick<Open, 'parent' | 'name' | 'kind'>,
    fromMs: number,
    toMs: number,
    attributes: Attributes,
    error?: string,
  ): void {
    const endMs = Date.parse(this.#run.completedAt);
    this.#spans.push({
      ...{ traceId: traceIdOf(this.#run), spanId: spanIdOf(this.#run, key), parentSpanId: spanIdOf(this.#run, parent) },
      // Agents report durations. A collector would refuse the whole trace because of a time that OTLP cannot express.
      ...{ name, kind, fromMs: Math.min(fromMs, endMs), toMs: Math.min(Math.max(fromMs, toMs), endMs), attributes },
      ...(error !== undefined && { error }),
    });
  }

  /** What is still open ends with the run, which is the root. */
  finish(): Span[] {
    const run = this.#run;
    const { runId, tenant, workflow, automation, trigger, status, createdAt, completedAt, error } = run;
    const endMs = Date.parse(completedAt);
    for (const key of [...this.#open.keys()]) this.#end(key, endMs);
    const caller = parseTraceparent(run.traceparent)?.spanId;
    const root: Span = {
      ...{ traceId: traceIdOf(run), spanId: spanIdOf(run, RUN_SPAN), name: RUN_SPAN, kind: 'server' },
      ...(caller !== undefined && { parentSpanId: caller }),
      ...{ fromMs: Date.parse(createdAt), toMs: endMs },
      attributes: {
        ...{ 'countersign.tenant': tenant, 'countersign.run': runId, 'countersign.status': status },
        ...{ 'countersign.workflow': workflow.name, 'countersign.workflow_version': workflow.version },
        ...{ 'countersign.automation': automation, 'countersign.source': trigger.source },
      },
      ...(error && { error: error.code }),
    };
    return [root, ...this.#spans];
  }
}

const assignKey = ({ index, leaseVersion }: { index: number; leaseVersion: number }): string =>
  `worker.assign ${index}.${leaseVersion}`;
