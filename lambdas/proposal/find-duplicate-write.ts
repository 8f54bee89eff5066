import { isAsMade, type Receipt, type SucceededReceipt, type TouchedState } from '../run/receipt.ts';
import type { RunReads } from '../run/run-store.ts';

/** A write that was made and is not being undone. */
export const isReusable = (receipt: Receipt): receipt is SucceededReceipt =>
  receipt.outcome === 'succeeded' && receipt.undoBegunAt === undefined;

export interface WantedWrite {
  tenant: string;
  key: string;
  /** The run that wants to make the write; its own writes always count as in place. */
  runId?: string;
  /** The values after the write, and how to read the current ones. */
  after: TouchedState | undefined;
  readBefore: () => Promise<TouchedState | undefined>;
  at: string;
}

/** False if the target shows that a write of another run was changed since: then the same write is a new one. */
export async function isInPlace(
  receipt: SucceededReceipt,
  { runId, after, readBefore, at }: Omit<WantedWrite, 'tenant' | 'key'>,
): Promise<boolean> {
  if (receipt.runId === runId) return true;
  return isAsMade(receipt, after, after && (await readBefore()), at);
}

/** The receipt of an identical write that is in place: making the write again would change nothing. */
export async function findDuplicateWrite(
  runs: Pick<RunReads, 'receipts'>,
  wanted: WantedWrite,
): Promise<SucceededReceipt | undefined> {
  const [held] = await runs.receipts(wanted.tenant, [wanted.key]);
  return held && isReusable(held) && (await isInPlace(held, wanted)) ? held : undefined;
}
