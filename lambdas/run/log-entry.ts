import * as z from 'zod';
import { Sha256 } from './digest.ts';

/** What the log stores of a bundle: enough to recognize it, and to notice that it is missing. */
export const LogEntry = z.strictObject({
  runId: z.string(),
  /** The number of the commit, if it is an addendum to the bundle. */
  addendum: z.int().positive().optional(),
  /** Of the document. */
  sha256: Sha256,
  /** Where the run's chain of commits ends. */
  head: Sha256,
  count: z.int().positive(),
  sealedAt: z.iso.datetime({ precision: 3 }),
});
export type LogEntry = z.infer<typeof LogEntry>;

/** Days are in UTC, like 2026-11-16. */
export const dayOf = (at: string): string => at.slice(0, 10);

/** Distinguishes the bundle of a run and its addenda. */
export const logEntryId = ({ runId, addendum }: Pick<LogEntry, 'runId' | 'addendum'>): string =>
  addendum === undefined ? runId : `${runId}/${String(addendum).padStart(8, '0')}`;
