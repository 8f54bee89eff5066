import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SENT_TOGETHER_MAX, type StepMessage, type StepQueue } from '../../lambdas/run-changes/step-queue.ts';

export interface OpenStepQueue {
  queue: StepQueue;
  /** Receives the messages that are visible now. */
  receive(): Promise<StepMessage[]>;
  advance(byMs: number): void;
  /** The real clock runs, so a test cannot check the moment right before a time. */
  clockRuns: boolean;
  close(): Promise<void>;
}

export function describeStepQueueContract(name: string, open: () => Promise<OpenStepQueue>): void {
  describe(`${name} as the step queue`, () => {
    let opened: OpenStepQueue;
    beforeEach(async () => {
      opened = await open();
    });
    afterEach(() => opened.close());
    const message = { tenant: 'acme', runId: 'run_1' };

    it('delivers a message as it was sent', async () => {
      await opened.queue.send(message);
      expect(await opened.receive()).toEqual([message]);
      expect(await opened.receive()).toEqual([]);
    });

    it('delivers two equal messages twice', async () => {
      await Promise.all([opened.queue.send(message), opened.queue.send(message)]);
      expect(await opened.receive()).toEqual([message, message]);
    });

    it('sends ten messages of several tenants in one request', async () => {
      const messages = Array.from({ length: SENT_TOGETHER_MAX }, (_, index) => ({
        tenant: `tenant-${index % 3}`,
        runId: `run_${index}`,
      }));
      expect(await opened.queue.sendTogether(messages)).toEqual([]);
      expect(await opened.queue.sendTogether([])).toEqual([]);
      const received = await opened.receive();
      expect(received.sort((a, b) => (a.runId < b.runId ? -1 : 1))).toEqual(messages);
    });

    it('delivers a delayed message at its time, to the second', async () => {
      const beforeMs = opened.clockRuns ? 30_500 : 1;
      await opened.queue.send(message, 300_500);
      opened.advance(300_500 - beforeMs);
      expect(await opened.receive()).toEqual([]);
      opened.advance(beforeMs + 500);
      expect(await opened.receive()).toEqual([message]);
    });

    it('accepts a delay of hours, and delivers no later than that', async () => {
      await opened.queue.send(message, 2 * 60 * 60 * 1000);
      opened.advance(2 * 60 * 60 * 1000);
      expect(await opened.receive()).toEqual([message]);
    });
  });
}
