import { isRecord, listOf } from '../../../run/events/replay-state.ts';
import { UNDO_INDEX_OFFSET } from '../../../run/step.ts';
import type { Breach } from './rule.ts';
import type { PlacedEvent } from './run-history.ts';

/** Reads fields of events. A verifier does not trust them: each may be missing or have another type. */
export const text = (value: unknown): string => (typeof value === 'string' ? value : '');
export const texts = (value: unknown): string[] => listOf(value).map(text);
export const number = (value: unknown): number => (typeof value === 'number' ? value : Number.NaN);
export const records = (value: unknown): Record<string, unknown>[] => listOf(value).filter(isRecord);

/** The id of an approval ends with the index of its step. */
export const indexOfApproval = (approvalId: unknown): number => Number(/-(\d+)$/.exec(text(approvalId))?.[1] ?? -1);

export const isUndo = (index: number): boolean => index >= UNDO_INDEX_OFFSET;
export const undoneBy = (index: number): number => index - UNDO_INDEX_OFFSET;

/** The last of these, which are in order, before some position. By bisection, because a hostile bundle may have many. */
export function lastBefore<Placed>(list: readonly Placed[], place: number, placeOf: (each: Placed) => number) {
  let [from, to] = [0, list.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (placeOf(list[middle] as Placed) < place) from = middle + 1;
    else to = middle;
  }
  return list[from - 1];
}

/** A breach at an event: its commit and its step. */
export function breachAt({ seq, event }: PlacedEvent, problem: string): Breach {
  const step = text(event.step);
  return { entry: `commit ${seq}${step === '' ? '' : ` (${step})`}`, problem };
}

/** `machine:deploy@olivia` acts for Olivia, who created its key. */
const MACHINE = /^machine:[^@]+@(.+)$/;
export const personOf = (actor: string): string => MACHINE.exec(actor)?.[1] ?? actor;
