import type { Clock } from '../../../lambdas/entry/ports.ts';
import type { StepMessage, StepQueue } from '../../../lambdas/run-changes/step-queue.ts';
import { type Passage, undisturbed } from '../passage.ts';

/** Stores every message with the time from which it may be received. */
export class MemoryStepQueue implements StepQueue {
  readonly #clock: Clock;
  readonly #passage: Passage;
  #waiting: { message: StepMessage; dueMs: number }[] = [];

  constructor(clock: Clock, passage: Passage = undisturbed) {
    this.#clock = clock;
    this.#passage = passage;
  }

  send(message: StepMessage, delayMs = 0): Promise<void> {
    return this.#passage('queue.send', async () => {
      this.#waiting.push({ message: { ...message }, dueMs: this.#clock.now() + delayMs });
    });
  }

  /** Each message can have its own fault. */
  async sendTogether<Message extends StepMessage>(messages: readonly Message[]): Promise<Message[]> {
    const sends = await Promise.allSettled(messages.map(({ tenant, runId }) => this.send({ tenant, runId })));
    return messages.filter((_, index) => sends[index]?.status === 'rejected');
  }

  /** Removes and returns the messages that may be received now, oldest first. */
  receive(): StepMessage[] {
    const due = this.#waiting.filter(({ dueMs }) => dueMs <= this.#clock.now());
    this.#waiting = this.#waiting.filter((entry) => !due.includes(entry));
    return due.sort((a, b) => a.dueMs - b.dueMs).map(({ message }) => message);
  }

  /** Loses everything in it. */
  purge(): void {
    this.#waiting = [];
  }

  /** How long each waiting message still has to wait. */
  delaysMs(): number[] {
    return this.#waiting.map(({ dueMs }) => dueMs - this.#clock.now());
  }
}
