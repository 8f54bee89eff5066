import { tryParseJsonBytes } from '../../entry/parse-json.ts';
import { canonicalJson, sha256Hex } from '../../run/canonical-json.ts';
import { buildDayLog, DayLog, documentOf, logClaim } from '../daily-log/daily-log.ts';
import type { Claim } from '../signing/dsse.ts';
import { claimOf, openEnvelope } from './open-envelope.ts';
import { checkKey, signingKey, type TrustedKey } from './trusted-keys.ts';
import type { HeldAddendum } from './verify-addenda.ts';

/** A log (named by its day) or a bundle (named by its run), with its envelope. */
export interface HeldFiles {
  tenant: string;
  name: string;
  document: Buffer;
  envelope: Buffer | undefined;
  /** Why a file was not read at all: it is far too large. */
  refused?: string;
  /** Of a bundle. */
  addenda?: readonly HeldAddendum[];
}

export const unread = (what: string, { refused }: HeldFiles) =>
  `${what} cannot be read${refused === undefined ? '' : `: ${refused}`}`;

/** Returns the log, if it is readable, and its first problem. */
export function readLog(
  held: HeldFiles,
  keys: readonly TrustedKey[],
): { log?: DayLog; problem: string } | { log: DayLog } {
  const { data: log } = DayLog.safeParse(tryParseJsonBytes(held.document));
  if (!log) return { problem: unread('its log', held) };
  const { tenant, day } = log;
  if (tenant !== held.tenant || day !== held.name) {
    return { log, problem: `its log is that of ${tenant}, ${day}, under another name` };
  }
  if (!documentOf(buildDayLog(log)).equals(held.document)) {
    return { log, problem: 'its log was edited: its root and size are not those of its entries' };
  }
  const problem = checkLogEnvelope(log, held, keys);
  return problem === undefined ? { log } : { log, problem };
}

/** Checks the signature of a log that is otherwise valid. */
export const checkLogEnvelope = (
  log: Omit<DayLog, 'entries'>,
  { document, envelope }: Pick<HeldFiles, 'document' | 'envelope'>,
  keys: readonly TrustedKey[],
): string | undefined => checkSignedDay('its log', log.day, logClaim(log, sha256Hex(document)), envelope, keys);

/** Checks that an envelope has this claim, signed with a key that was valid on that day. */
export function checkSignedDay(
  what: string,
  day: string,
  due: Claim,
  envelope: Buffer | undefined,
  keys: readonly TrustedKey[],
): string | undefined {
  if (!envelope) return `${what} is not signed: the envelope beside it is missing`;
  try {
    const opened = openEnvelope(envelope);
    const signer = signingKey(opened, keys);
    if (!signer) return `${what} is not signed by that key`;
    const problem = checkKey(signer, opened.keyId, day);
    if (problem !== undefined) return `the signature of ${what} ${problem}`;
    const isSame = canonicalJson(claimOf(opened)) === canonicalJson(due);
    return isSame ? undefined : `${what} differs from the signed ${what.replace(/^its /, '')}`;
  } catch (error) {
    return `the envelope of ${what} cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  }
}
