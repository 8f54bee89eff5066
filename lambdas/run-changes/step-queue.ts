/** Asks a worker to process the run. It may be lost, doubled or late: the lease decides which worker performs a step. */
export interface StepMessage {
  tenant: string;
  runId: string;
  /** The run is woken for a free slot. These runs were woken for it before and could not start. */
  passedOver?: string[];
  /** The message was delayed until this lease ends. If it was renewed since, the same message is delayed again. */
  watches?: WatchedLease;
  /** The step of this session has ended: the session shall end, too. Nothing else is processed, and no row is read. */
  endSession?: EndedSession;
}

/** Everything that the worker needs to end a session at its provider. */
export type EndedSession = { sessionId: string; traceparent: string } & (
  | { url: string; connection: string }
  /** The session is the command of a run, which this actor cancels. */
  | { canceledBy: string }
);

export interface WatchedLease {
  stepIndex: number;
  leaseVersion: number;
}

export interface StepQueue {
  send(message: StepMessage, delayMs?: number): Promise<void>;
  /** Up to `SENT_TOGETHER_MAX` messages in one request; returns the messages that the queue did not accept. */
  sendTogether<Message extends StepMessage>(messages: readonly Message[]): Promise<Message[]>;
}

/** The limit of SQS for one request. */
export const SENT_TOGETHER_MAX = 10;
/** The longest delay of SQS. The sweeper sends what is due later. */
export const DELAY_MAX_MS = 15 * 60_000;
