import { AsyncLocalStorage } from 'node:async_hooks';

export interface RequestToSend {
  system: string;
  /** False for one that changes nothing at its target: a read, a probe, a token. */
  writes: boolean;
  /** The longest it may take if there is time enough. */
  timeoutMs: number;
}

/** The time that one attempt at a step has, shared by all of its requests: tokens, probes, reads, pages, the write. */
export interface AttemptDeadline {
  /** Asked right before a request leaves: how long it may take. Throws if it must not be sent any more. */
  allowMs(request: RequestToSend): number;
  /** The request that was allowed last never left. */
  neverLeft(): void;
}

const deadlines = new AsyncLocalStorage<AttemptDeadline>();

/**
 * Everything that `attempt` sends keeps to the deadline. It travels with the call and not as a parameter, so that no
 * connector can forget to hand it on.
 */
export const withinDeadline = <T>(deadline: AttemptDeadline, attempt: () => Promise<T>): Promise<T> =>
  deadlines.run(deadline, attempt);

export const allowedMs = (request: RequestToSend): number =>
  deadlines.getStore()?.allowMs(request) ?? request.timeoutMs;

export const neverLeft = (): void => deadlines.getStore()?.neverLeft();
