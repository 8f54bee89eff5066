/** Messages that failed too often, and the way back for them once their cause is mended. */
export interface DeadLetters {
  counts(): Promise<{ queue: string; messages: number }[]>;
  /** Sends all of them back to where they came from; a run that has moved on meanwhile is not disturbed by its message. */
  redrive(): Promise<void>;
}
