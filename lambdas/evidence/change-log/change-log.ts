import * as z from 'zod';
import { canonicalJson, sha256Hex } from '../../run/canonical-json.ts';
import { PreviousDay } from '../daily-log/daily-log.ts';
import type { Claim } from '../signing/dsse.ts';

/**
 * The changes of one day of a tenant's definitions, and the hash of the previous day. A day without changes has a file
 * too, so that a missing file is noticed.
 */
export const CHANGE_LOG_FORMAT = 'countersign.change-log/1';
const PREDICATE_TYPE = 'https://countersign.dev/change-log/v1';

/** A larger value is exported as its size and hash. Otherwise a day with many large policies would not fit in memory. */
const VALUE_MAX_BYTES = 8 * 1024;

const LoggedChange = z.looseObject({ changeId: z.string(), at: z.string(), actor: z.string() });
export type LoggedChange = z.infer<typeof LoggedChange> & { before?: unknown; after?: unknown };

export const ChangeLog = z.strictObject({
  format: z.literal(CHANGE_LOG_FORMAT),
  tenant: z.string(),
  day: z.iso.date(),
  /** Null in the first file. */
  previous: PreviousDay.nullable(),
  /** Oldest first. The first file has all earlier changes. */
  changes: z.array(LoggedChange),
});
export type ChangeLog = z.infer<typeof ChangeLog>;

export const changeLogKey = (tenant: string, day: string) => `log/${tenant}/changes/${day}.json`;
export const changeLogEnvelopeKey = (tenant: string, day: string) => `log/${tenant}/changes/${day}.dsse.json`;

export function buildChangeLog(
  facts: Pick<ChangeLog, 'tenant' | 'day' | 'previous'>,
  changes: LoggedChange[],
): ChangeLog {
  return { format: CHANGE_LOG_FORMAT, ...facts, changes: changes.map(boundedChange) };
}

/** Without its larger values. Doing it again changes nothing. */
export const boundedChange = (change: LoggedChange): LoggedChange => ({
  ...change,
  before: bounded(change.before),
  after: bounded(change.after),
});

function bounded(value: unknown): unknown {
  const text = canonicalJson(value ?? null);
  const bytes = Buffer.byteLength(text);
  return bytes <= VALUE_MAX_BYTES ? (value ?? null) : { omitted: { bytes, sha256: sha256Hex(text) } };
}

export const changeLogDocument = (log: ChangeLog): Buffer => Buffer.from(canonicalJson(log));

export const changeLogClaim = ({ tenant, day, previous, changes }: ChangeLog, sha256: string): Claim => ({
  subject: `${tenant}/changes/${day}`,
  sha256,
  predicateType: PREDICATE_TYPE,
  predicate: { size: changes.length, previous },
});
