import type { Collection, SimulatorStore } from '../store.ts';
import type { SURPRISES } from '../system.ts';

export type SessionBehavior = (typeof SURPRISES)['sessions'][number];

export type TaskState =
  | 'TASK_STATE_WORKING'
  | 'TASK_STATE_COMPLETED'
  | 'TASK_STATE_CANCELED'
  | 'TASK_STATE_FAILED'
  | 'TASK_STATE_REJECTED';

/** One task of the simulated agent: a session of Countersign. */
export interface Session {
  id: string;
  contextId: string;
  state: TaskState;
  /** What it does instead of its work, because a fault asked for it. */
  behavior?: SessionBehavior;
  /** The agent has lost it: it does not know it any more. */
  isGone?: true;
  messageId: string;
  prompt: string;
  /** The data of the prompt: the contract of the session. */
  contract: Contract;
  /** Where the agent reports changes of the task, as the client asked for. */
  notifications?: { url: string; token?: string; credentials?: string };
  /** How often the client asked the agent to end it. */
  cancelRequests: number;
  /** What the session did, for the page and for tests. */
  deeds: { at: string; what: string }[];
  startedAt: string;
  updatedAt: string;
}

/** What Countersign sends with the prompt. */
export interface Contract {
  run_id: string;
  completion_id: string;
  token: string;
  expires_at: string;
  urls: { actions: string; complete: string; heartbeat: string };
  actions: { tool: string; with?: Record<string, unknown> }[];
  context?: unknown;
}

const AT_WORK = 'at work';
const ENDED = 'ended';

/** The tasks of the simulated agent. */
export class Sessions {
  readonly #sessions: Collection<Session>;
  /** The tasks of a context, by its id. */
  readonly #contexts: Collection<string[]>;
  readonly #store: SimulatorStore;
  readonly #now: () => number;

  constructor(store: SimulatorStore, now: () => number) {
    this.#store = store;
    this.#now = now;
    this.#sessions = store.collection<Session>('sessions.task');
    this.#contexts = store.collection<string[]>('sessions.context');
  }

  /** Like most agents, it does not recognize a repeated message: it starts another task. */
  start(
    facts: Pick<Session, 'contextId' | 'state' | 'behavior' | 'messageId' | 'prompt' | 'contract' | 'notifications'>,
  ) {
    const at = this.#at();
    const id = `task-${this.#store.nextId('sessions.task', 16)}`;
    const session: Session = { ...facts, id, cancelRequests: 0, deeds: [], startedAt: at, updatedAt: at };
    this.#contexts.put(facts.contextId, [...(this.#contexts.get(facts.contextId) ?? []), id]);
    this.#put(session);
    return session;
  }

  /** The task as the agent knows it. */
  get(id: string): Session | undefined {
    const session = this.#sessions.get(id);
    return session?.isGone ? undefined : session;
  }

  inContext(contextId: string): Session[] {
    return (this.#contexts.get(contextId) ?? []).flatMap((id) => this.get(id) ?? []);
  }

  /** Changes a task, and says what happened to it. */
  change(id: string, changes: Partial<Session>, what?: string): void {
    this.#store.transaction(() => {
      const session = this.#sessions.get(id);
      if (!session) return;
      const at = this.#at();
      const deeds = what === undefined ? session.deeds : [...session.deeds, { at, what }];
      this.#put({ ...session, ...changes, deeds, updatedAt: at });
    });
  }

  atWork(): Session[] {
    return this.#sessions.list(AT_WORK);
  }

  latest(limit: number): Session[] {
    return this.#sessions.latest(limit);
  }

  #put(session: Session): void {
    this.#sessions.put(session.id, session, session.state === 'TASK_STATE_WORKING' ? AT_WORK : ENDED);
  }

  #at(): string {
    return new Date(this.#now()).toISOString();
  }
}
