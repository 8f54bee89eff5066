/** "Look at this run": a hint that may be lost, doubled or late. The lease decides who works. */
export interface StepMessage {
  tenant: string;
  runId: string;
}

export interface StepQueue {
  send(message: StepMessage, delayMs?: number): Promise<void>;
}
