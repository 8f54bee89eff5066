import { AsyncLocalStorage } from 'node:async_hooks';

export interface RequestToSend {
  system: string;
  /** False for a request that changes nothing at its target: a read, a probe, a token request. */
  writes: boolean;
  /** The timeout if enough time is left. */
  timeoutMs: number;
}

/** The time limit of one attempt at a step, shared by all of its requests: tokens, probes, reads, pages, the write. */
export interface AttemptDeadline {
  /** Called right before a request is sent. Returns its timeout, or throws if too little time is left to send it. */
  allowMs(request: RequestToSend): number;
  /** The last allowed request was not sent. */
  requestNotSent(): void;
  /** The span of the attempt, for the header of each request. */
  readonly traceparent?: string | undefined;
}

const deadlines = new AsyncLocalStorage<AttemptDeadline>();

/** Applies the deadline to every request of `attempt`. It is not a parameter, so no connector can forget to pass it. */
export const withinDeadline = <T>(deadline: AttemptDeadline, attempt: () => Promise<T>): Promise<T> =>
  deadlines.run(deadline, attempt);

export const allowedMs = (request: RequestToSend): number =>
  deadlines.getStore()?.allowMs(request) ?? request.timeoutMs;

/** Part of the request only: neither the proposed write nor its key, hash or receipt contain it. */
export function traceHeader(): { traceparent?: string } {
  const traceparent = deadlines.getStore()?.traceparent;
  return traceparent === undefined ? {} : { traceparent };
}

export const requestNotSent = (): void => deadlines.getStore()?.requestNotSent();
