import { setTimeout as wait } from 'node:timers/promises';
import type { Session, Sessions, TaskState } from './session.ts';
import { findingsFor } from './triage.ts';

/** How long the session waits before it asks again, in real time: the host's clock may jump. */
const ASKS_EVERY_MS = 150;
const HEARTBEAT_EVERY_MS = 5 * 60_000;
/** A slow session works longer than a session may be silent (30 minutes). */
const SLOW_WORK_MS = 40 * 60_000;
const LATE_MS = 1_000;
const OPEN_ACTION = ['pending', 'waiting_approval'];
const NO_SUCH_RUN = `run_${'0'.repeat(32)}`;

interface Reply {
  status: number;
  body: { code?: string; status?: string; actionId?: string };
}

/** The session has ended while it worked. */
class Stopped extends Error {}

/**
 * What the sessions of the simulated agent do: they propose what they found, wait for the outcomes, and complete, over HTTP
 * and with the token of their prompt. After a restart of the host they begin again; their idempotency keys are the same.
 */
export class SimulatedAgent {
  readonly #sessions: Sessions;
  readonly #now: () => number;
  readonly #atWork = new Map<string, AbortController>();
  /** How often each session at work has waited, so that a test knows that it has noticed a change. */
  readonly waits = new Map<string, number>();

  constructor(sessions: Sessions, now: () => number) {
    this.#sessions = sessions;
    this.#now = now;
  }

  work(session: Session): void {
    const stopping = new AbortController();
    this.#atWork.set(session.id, stopping);
    this.#live(session, stopping.signal)
      .catch((error: unknown) => {
        if (!(error instanceof Stopped)) console.error('A simulated session failed:', error);
      })
      .finally(() => {
        this.#atWork.delete(session.id);
        this.waits.delete(session.id);
      });
  }

  stop(id: string): void {
    this.#atWork.get(id)?.abort();
  }

  close(): void {
    for (const stopping of this.#atWork.values()) stopping.abort();
  }

  async #live(session: Session, signal: AbortSignal): Promise<void> {
    // The response with the id of the task leaves first.
    await this.#pause(session, signal);
    switch (session.behavior) {
      case 'dies':
        return this.#end(session, 'TASK_STATE_FAILED', 'died');
      case 'disappears':
        return this.#sessions.change(session.id, { isGone: true, state: 'TASK_STATE_FAILED' }, 'was lost by its agent');
      case 'ends_early':
        return this.#end(session, 'TASK_STATE_COMPLETED', 'ended without a completion');
      case 'silent':
        return;
      case 'reports_another_run':
        await this.#reportAnotherRun(session, signal);
        return this.#end(session, 'TASK_STATE_COMPLETED', 'ended');
      case 'slow':
        await this.#waitUntil(session, this.#now() + SLOW_WORK_MS, signal);
        break;
      case 'completes_late':
        await this.#waitUntil(session, Date.parse(session.contract.expires_at) + LATE_MS, signal);
    }
    await this.#do(session, signal);
  }

  async #do(session: Session, signal: AbortSignal): Promise<void> {
    const { actions, outcome, summary } = findingsFor(session.contract);
    const proposed: { tool: string; status: string }[] = [];
    for (const [place, action] of actions.entries()) {
      const status = await this.#propose(session, place, action, signal);
      proposed.push({ tool: action.tool, status });
    }
    const completion = { outcome, summary, output: { proposed } };
    await this.#complete(session, completion, signal);
    if (session.behavior === 'completes_twice') {
      await this.#complete(session, completion, signal);
      await this.#complete(session, { ...completion, summary: 'Something else.' }, signal);
    }
    await this.#end(session, 'TASK_STATE_COMPLETED', 'ended');
  }

  /** Proposes an action, and sends heartbeats until the action has an outcome. */
  async #propose(
    session: Session,
    place: number,
    action: { tool: string; input: object },
    signal: AbortSignal,
  ): Promise<string> {
    const { actions } = session.contract.urls;
    const headers = { 'idempotency-key': `${session.messageId}:${place}` };
    let { body, status } = await this.#send(session, 'POST', actions, action, signal, headers);
    let seenMs = this.#now();
    let said = '';
    for (;;) {
      const ending = status < 300 ? (body.status ?? '') : (body.code ?? String(status));
      if (ending !== said) this.#says(session, `proposed ${action.tool}: ${ending}`);
      said = ending;
      if (!OPEN_ACTION.includes(ending)) return ending;
      await this.#pause(session, signal);
      seenMs = await this.#beat(session, seenMs, signal);
      ({ body, status } = await this.#send(session, 'GET', `${actions}/${body.actionId}`, undefined, signal));
    }
  }

  async #complete(session: Session, completion: object, signal: AbortSignal): Promise<void> {
    const { completion_id, urls } = session.contract;
    const { status, body } = await this.#send(session, 'POST', urls.complete, { completion_id, ...completion }, signal);
    this.#says(session, `completed: ${status}${body.code ? ` ${body.code}` : ''}`);
  }

  /** Completes the run of another session, and its own with a wrong id. Both must be refused. */
  async #reportAnotherRun(session: Session, signal: AbortSignal): Promise<void> {
    const { run_id, urls, completion_id } = session.contract;
    const others = this.#sessions.latest(10).map(({ contract }) => contract.run_id);
    const other = others.find((runId) => runId !== run_id) ?? NO_SUCH_RUN;
    const completion = { outcome: 'succeeded', summary: 'Done, I think.' };
    const elsewhere = urls.complete.replace(run_id, other);
    const first = await this.#send(session, 'POST', elsewhere, { completion_id, ...completion }, signal);
    this.#says(session, `completed another run: ${first.status} ${first.body.code}`);
    const wrong = { completion_id: 'cmp_of_another_session', ...completion };
    const second = await this.#send(session, 'POST', urls.complete, wrong, signal);
    this.#says(session, `completed with another id: ${second.status} ${second.body.code}`);
  }

  /** The task ends, and the agent notifies its client, once and without a second try. */
  async #end(session: Session, state: TaskState, what: string): Promise<void> {
    if (this.#sessions.get(session.id)?.state !== 'TASK_STATE_WORKING') return;
    this.#sessions.change(session.id, { state }, what);
    const { url, token, credentials } = session.notifications ?? {};
    if (url === undefined) return;
    const { id, contextId } = session;
    const status = { state, timestamp: new Date(this.#now()).toISOString() };
    await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(token !== undefined && { 'x-a2a-notification-token': token }),
        ...(credentials !== undefined && { authorization: `Bearer ${credentials}` }),
      },
      body: JSON.stringify({ statusUpdate: { taskId: id, contextId, status } }),
    }).catch(() => undefined);
  }

  async #waitUntil(session: Session, untilMs: number, signal: AbortSignal): Promise<void> {
    let seenMs = this.#now();
    while (this.#now() < untilMs) {
      await this.#pause(session, signal);
      if (this.#now() < Date.parse(session.contract.expires_at)) seenMs = await this.#beat(session, seenMs, signal);
    }
  }

  /** Sends a heartbeat if the last one was minutes ago. */
  async #beat(session: Session, seenMs: number, signal: AbortSignal): Promise<number> {
    if (this.#now() < seenMs + HEARTBEAT_EVERY_MS) return seenMs;
    await this.#send(session, 'POST', session.contract.urls.heartbeat, {}, signal);
    return this.#now();
  }

  /** Repeats a request that the stage could not serve, or could not serve yet. */
  async #send(
    session: Session,
    method: string,
    url: string,
    body: object | undefined,
    signal: AbortSignal,
    headers: Record<string, string> = {},
  ): Promise<Reply> {
    for (;;) {
      const reply = await fetch(url, {
        method,
        headers: { 'content-type': 'application/json', authorization: `Bearer ${session.contract.token}`, ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal,
      }).catch(() => undefined);
      const text = (await reply?.text().catch(() => '')) ?? '';
      const parsed: Reply['body'] = text.startsWith('{') ? JSON.parse(text) : {};
      if (reply && reply.status < 500 && reply.status !== 429 && parsed.code !== 'SESSION_STARTING') {
        return { status: reply.status, body: parsed };
      }
      await this.#pause(session, signal);
    }
  }

  #says(session: Session, what: string): void {
    this.#sessions.change(session.id, {}, what);
  }

  async #pause({ id }: Session, signal: AbortSignal): Promise<void> {
    this.waits.set(id, (this.waits.get(id) ?? 0) + 1);
    await wait(ASKS_EVERY_MS, undefined, { signal }).catch(() => {
      throw new Stopped();
    });
  }
}
