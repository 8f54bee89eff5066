import { deadLetterRoutes, type QueueCount } from '../contract/operations.ts';
import { router } from '../router.ts';

/** Messages that failed too often. Both methods see only the messages of one tenant. */
export interface DeadLetters {
  counts(tenant: string): Promise<QueueCount[]>;
  /** Sends the messages back to their queues. A message for a run that has continued meanwhile changes nothing. */
  redrive(tenant: string): Promise<QueueCount[]>;
}

export const handleDeadLetters = router<DeadLetters, typeof deadLetterRoutes>(deadLetterRoutes, {
  async countDeadLetters(deadLetters, { caller: { tenant } }) {
    return { status: 200, body: { queues: await deadLetters.counts(tenant) } };
  },
  async redriveDeadLetters(deadLetters, { caller: { tenant } }) {
    return { status: 202, body: { redriven: await deadLetters.redrive(tenant) } };
  },
});
