/** "Look at this run": a hint that may be lost, doubled or late. The lease decides who works. */
export interface StepMessage {
  tenant: string;
  runId: string;
  /** The run is woken because a slot became free. These others were woken for it before, and could not start. */
  passedOver?: string[];
}

export interface StepQueue {
  send(message: StepMessage, delayMs?: number): Promise<void>;
  /** Up to `SENT_TOGETHER_MAX` messages in one request; those that the queue did not take are returned. */
  sendTogether<Message extends StepMessage>(messages: readonly Message[]): Promise<Message[]>;
}

/** What SQS takes in one request. */
export const SENT_TOGETHER_MAX = 10;
