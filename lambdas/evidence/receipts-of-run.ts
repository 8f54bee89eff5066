import type { Commit } from '../run/commit.ts';
import type { Receipt } from '../run/receipt.ts';
import type { RunStore } from '../run/run-store.ts';

/** A receipt may contain a whole response of its target. Only this many are in memory at a time. */
const RECEIPTS_AT_A_TIME = 25;

/** Reads receipts a few at a time. */
export async function* receiptsOf(
  runs: Pick<RunStore, 'receipts'>,
  tenant: string,
  keys: readonly string[],
): AsyncGenerator<Receipt> {
  for (let at = 0; at < keys.length; at += RECEIPTS_AT_A_TIME) {
    yield* await runs.receipts(tenant, keys.slice(at, at + RECEIPTS_AT_A_TIME));
  }
}

/** The keys of the writes that a commit began or reused. */
export const receiptKeysIn = ({ events }: Commit): string[] =>
  events.flatMap((event) =>
    event.type === 'write.intended' || event.type === 'write.reused' ? [event.receiptKey] : [],
  );
