import type { Completion } from '../../../lambdas/run-changes/session/complete-session.ts';
import type { ActionProposal } from '../../../lambdas/run-changes/session/propose-action.ts';
import { Invocation } from '../environment/invocation.ts';
import type { SessionBehavior, SessionKind, SessionWorld } from './simulated-sessions.ts';

const RETRIES_AFTER_MS = [500, 20_000] as const;
const TRIES_MAX = 30;
/** More than clocks may differ. */
const LATE_MS = 11 * 60_000;

/** The part of the prompt's data that a session uses. */
export interface Contract {
  run_id: string;
  completion_id: string;
  token: string;
  expires_at: string;
}

/** Where a session runs: a task of an agent that speaks A2A, or a command of an enrolled agent. */
export interface SessionPlace {
  readonly id: string;
  readonly contract: Contract;
  readonly isAtWork: boolean;
  /** It notifies the stage of the end of a session. */
  readonly notifies: boolean;
  end(how: 'completed' | 'failed'): void;
  /** It forgets the session. */
  disappear(): void;
}

/** What the API responds to a session: the result, a refusal, or nothing. */
export type SessionReply<T> = { result: T } | { refused: string } | 'failed';

/** One session, as an AI agent might behave. It repeats a request until there is a response. */
export class SessionProcess {
  readonly #world: SessionWorld;
  readonly #behavior: SessionBehavior;
  readonly #place: SessionPlace;
  readonly #kind: SessionKind;
  readonly #contract: Contract;
  readonly #invocation: Invocation;

  constructor(world: SessionWorld, behavior: SessionBehavior, tenant: string, place: SessionPlace, kind: SessionKind) {
    this.#world = world;
    this.#behavior = behavior;
    this.#place = place;
    this.#kind = kind;
    this.#contract = place.contract;
    this.#invocation = new Invocation(world.time, {
      ...{ id: `session ${place.id}`, tenant, machine: 0, skewMs: 0 },
      ...{ timeoutMs: Number.POSITIVE_INFINITY, outlivesTimeout: true },
    });
  }

  run(): void {
    // A process that crashes is a session that has failed.
    this.#invocation.onEnd((ending) => {
      if (ending === 'killed' && this.#place.isAtWork) this.#place.end('failed');
    });
    void this.#live();
  }

  /** Its command was stopped. A late one has left a process behind, which goes on. */
  stop(): void {
    if (this.#kind !== 'late') this.#invocation.kill();
  }

  async #live(): Promise<void> {
    await this.#work();
    switch (this.#kind) {
      case 'silent':
        return;
      case 'disappears':
        return this.#place.disappear();
      case 'dies':
        return this.#end('failed');
      case 'ends_early':
        return this.#end('completed');
      case 'reports_another_id':
        await this.#complete({ ...this.#completion(), completionId: 'cmp_of_another' });
        return this.#end('completed');
      case 'late':
        await this.#sleep(Date.parse(this.#contract.expires_at) + LATE_MS - this.#world.time.now());
        await this.#complete(this.#completion());
        return this.#end('completed');
    }
    await this.#act();
    await this.#request('heartbeat', (reply) => this.#world.functions().heartbeat(this.#contract.token, false, reply));
    await this.#work();
    if (this.#kind === 'races_itself') {
      await Promise.all([this.#complete(this.#completion()), this.#complete(this.#completion('Another.'))]);
    } else await this.#complete(this.#completion());
    if (this.#kind === 'completes_twice') {
      await this.#complete(this.#completion());
      await this.#complete(this.#completion('Another.'));
    }
    await this.#end('completed');
  }

  /** Proposes actions; the last one twice with the same key. */
  async #act(): Promise<void> {
    const { run_id } = this.#contract;
    const comment = (number: number) => ({
      key: `comment ${number}`,
      tool: 'github.comment.create',
      input: { body: `${run_id} ${this.#place.id} ${number}` },
    });
    const count = this.#kind === 'reaches_beyond' ? 5 : this.#world.random.between(0, 3);
    for (let number = 0; number < count; number += 1) await this.#propose(comment(number));
    if (count > 0) await this.#propose(comment(count - 1));
    if (this.#kind !== 'reaches_beyond') return;
    await this.#propose({ key: 'other tool', tool: 'github.issue.close', input: {} });
    await this.#propose({ key: 'other issue', tool: 'github.comment.create', input: { number: 8, body: 'elsewhere' } });
  }

  async #propose(proposal: ActionProposal): Promise<void> {
    await this.#work();
    const reply = await this.#request<string>('propose', (replied) =>
      this.#world.functions().propose(this.#contract.token, proposal, replied),
    );
    if (reply) this.#world.invariants.proposed(this.#invocation.tenant, this.#contract.run_id, proposal, reply);
  }

  #completion(summary = 'Done.'): Completion {
    return { completionId: this.#contract.completion_id, outcome: 'succeeded', summary };
  }

  async #complete(completion: Completion): Promise<void> {
    const reply = await this.#request<{ isRepeated: boolean }>('complete', (replied) =>
      this.#world.functions().completeSession(this.#contract.token, completion, replied),
    );
    if (!reply) return;
    const { run_id: runId, completion_id } = this.#contract;
    this.#world.invariants.completed({ tenant: this.#invocation.tenant, runId, completion_id }, completion, reply);
  }

  /** It ends by itself; the agent that it runs in may notify the stage. */
  async #end(how: 'completed' | 'failed'): Promise<void> {
    if (!this.#place.isAtWork) return;
    this.#place.end(how);
    if (this.#place.notifies && this.#world.random.chance(0.7)) {
      await this.#once('notify', (reply) => this.#world.functions().heartbeat(this.#contract.token, true, reply));
    }
  }

  /** Repeats a request until there is a response, for a while. */
  async #request<T>(
    name: string,
    send: (reply: (reply: SessionReply<T>) => void) => void,
  ): Promise<Exclude<SessionReply<T>, 'failed'> | undefined> {
    for (let times = 1; times <= TRIES_MAX; times += 1) {
      const reply = await this.#once(name, send);
      const isStarting = typeof reply === 'object' && 'refused' in reply && reply.refused === 'SESSION_STARTING';
      if (reply !== 'failed' && !isStarting) return reply;
      await this.#sleep(this.#world.random.between(...RETRIES_AFTER_MS));
    }
    return undefined;
  }

  #once<T>(name: string, send: (reply: (reply: SessionReply<T>) => void) => void): Promise<SessionReply<T>> {
    const effect = () => new Promise<SessionReply<T>>((resolve) => send(resolve));
    const call = { kind: 'agent' as const, name: `session ${name}` };
    return this.#world.faultyCalls.call(this.#invocation, call, effect).catch(() => 'failed' as const);
  }

  #work(): Promise<void> {
    return this.#sleep(this.#world.random.between(...this.#behavior.workMs));
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#world.time.after(Math.max(0, ms), () => this.#invocation.resume(resolve)));
  }
}
