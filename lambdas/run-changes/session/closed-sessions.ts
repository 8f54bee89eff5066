import type { SessionToken } from './session-token.ts';

/** More sessions than one instance of the function serves in the seconds between a completion and the notification of it. */
const REMEMBERED_MAX = 1_000;

/**
 * The sessions that one instance of a function has completed. Agents notify of the end of each task, right after its completion.
 * A closed session never opens again, so the instance can refuse this notification without a read.
 */
export class ClosedSessions {
  readonly #closed = new Set<string>();

  add(session: SessionToken): void {
    const [oldest] = this.#closed;
    if (oldest !== undefined && this.#closed.size >= REMEMBERED_MAX) this.#closed.delete(oldest);
    this.#closed.add(keyOf(session));
  }

  has(session: SessionToken): boolean {
    return this.#closed.has(keyOf(session));
  }
}

/** A step that is retried has another session, with another end. */
const keyOf = ({ tenant, runId, stepIndex, expiresAt }: SessionToken): string =>
  JSON.stringify([tenant, runId, stepIndex, expiresAt]);
