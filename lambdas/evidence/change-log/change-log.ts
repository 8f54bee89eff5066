import * as z from 'zod';
import { canonicalJson, hashOf } from '../../run/canonical-json.ts';
import { PreviousDay } from '../daily-log/daily-log.ts';
import type { Claim } from '../signing/dsse.ts';

/**
 * The changes of one day of a tenant's definitions, and the hash of the previous day. A day without changes has a file
 * too, so that a missing file is noticed.
 */
const CHANGE_LOG_FORMAT = 'countersign.change-log/2';
/** Files of an earlier release: their changes have names and values. They are verified, and no longer written. */
const FORMER_FORMAT = 'countersign.change-log/1';
const PREDICATE_TYPE = 'https://countersign.dev/change-log/v1';

/**
 * A change in the signed file. Nobody can delete the file before its retention ends, so it has nothing personal: who
 * changed what is behind the digest. The values stay in the history, where they can be deleted.
 */
const LoggedChange = z.strictObject({
  changeId: z.string(),
  at: z.string(),
  kind: z.string(),
  action: z.string(),
  /** SHA-256 of the change with its salt; null for a change without a salt, whose values could be guessed. */
  digest: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullable(),
});
export type LoggedChange = z.infer<typeof LoggedChange>;

/** An entry in the history, as far as the log has to know it. */
export const HistoryEntry = z.looseObject({
  changeId: z.string(),
  at: z.string(),
  kind: z.string(),
  action: z.string(),
  salt: z.string().optional(),
});
export type HistoryEntry = z.infer<typeof HistoryEntry>;

const FACTS = {
  tenant: z.string(),
  day: z.iso.date(),
  /** Null in the first file. */
  previous: PreviousDay.nullable(),
};
export const ChangeLog = z.discriminatedUnion('format', [
  /** Oldest first. The first file has all earlier changes. */
  z.strictObject({ format: z.literal(CHANGE_LOG_FORMAT), ...FACTS, changes: z.array(LoggedChange) }),
  z.strictObject({ format: z.literal(FORMER_FORMAT), ...FACTS, changes: z.array(HistoryEntry) }),
]);
export type ChangeLog = z.infer<typeof ChangeLog>;

export const CHANGE_LOG_FORMATS: readonly unknown[] = [CHANGE_LOG_FORMAT, FORMER_FORMAT];

export const changeLogKey = (tenant: string, day: string) => `log/${tenant}/changes/${day}.json`;
export const changeLogEnvelopeKey = (tenant: string, day: string) => `log/${tenant}/changes/${day}.dsse.json`;

export function loggedChange(entry: HistoryEntry): LoggedChange {
  const { changeId, at, kind, action, salt } = entry;
  return { changeId, at, kind, action, digest: salt === undefined ? null : hashOf(entry) };
}

export const buildChangeLog = (
  facts: Pick<ChangeLog, 'tenant' | 'day' | 'previous'>,
  changes: LoggedChange[],
): ChangeLog => ({ format: CHANGE_LOG_FORMAT, ...facts, changes });

export const changeLogDocument = (log: ChangeLog): Buffer => Buffer.from(canonicalJson(log));

export const changeLogClaim = ({ tenant, day, previous, changes }: ChangeLog, sha256: string): Claim => ({
  subject: `${tenant}/changes/${day}`,
  sha256,
  predicateType: PREDICATE_TYPE,
  predicate: { size: changes.length, previous },
});
