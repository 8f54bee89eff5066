import * as z from 'zod';
import { tryParseJsonBytes } from '../../entry/parse-json.ts';
import { hashOf, sha256Hex } from '../../run/canonical-json.ts';
import {
  CHANGE_LOG_FORMATS,
  ChangeLog,
  changeLogClaim,
  changeLogDocument,
  HistoryEntry,
} from '../change-log/change-log.ts';
import { daysLater, type PreviousDay } from '../daily-log/daily-log.ts';
import type { TrustedKey } from './trusted-keys.ts';
import { checkSignedDay, type HeldFiles } from './verify-daily-log.ts';

/** True for a file of changes; bundles and logs have other formats. */
export function isChangeLog(document: Buffer): boolean {
  const json = tryParseJsonBytes(document) as { format?: unknown } | undefined;
  return CHANGE_LOG_FORMATS.includes(json?.format);
}

/** Undefined if it is no file of changes in its canonical form. */
export function parseChangeLog(document: Buffer): ChangeLog | undefined {
  const { data } = ChangeLog.safeParse(tryParseJsonBytes(document));
  return data && changeLogDocument(data).equals(document) ? data : undefined;
}

export const checkChangeLogEnvelope = (
  file: ChangeLog,
  { document, envelope }: Pick<HeldFiles, 'document' | 'envelope'>,
  keys: readonly TrustedKey[],
): string | undefined =>
  checkSignedDay('its file of changes', file.day, changeLogClaim(file, sha256Hex(document)), envelope, keys);

export interface ReadChangeLog {
  file?: ChangeLog;
  problem?: string;
}

/** Returns the file, if it is readable, and its first problem. */
export function readChangeLog(
  { document, envelope }: Pick<HeldFiles, 'document' | 'envelope'>,
  keys: readonly TrustedKey[],
): ReadChangeLog {
  const file = parseChangeLog(document);
  if (!file) return { problem: 'its file of changes was edited or cannot be read' };
  const problem = checkChangeLogEnvelope(file, { document, envelope }, keys);
  return problem === undefined ? { file } : { file, problem };
}

/** The changes of a file with their values, as the history has them. Not signed: the digests in the file prove them. */
export const CHANGE_VALUES_FORMAT = 'countersign.change-values/1';
const ChangeValues = z.strictObject({
  format: z.literal(CHANGE_VALUES_FORMAT),
  tenant: z.string(),
  day: z.iso.date(),
  changes: z.array(HistoryEntry),
});
export type ChangeValues = z.infer<typeof ChangeValues>;

export interface CheckedValues {
  /** Changes whose values are those of the signed digest. */
  proven: number;
  /** Changes of the file whose values are not here, or which have no digest. */
  unproven: number;
  problem?: string;
}

/** Compares the values of changes with the digests of a signed file. Missing values are no problem: they can be deleted. */
export function checkChangeValues(file: ChangeLog, document: Buffer): CheckedValues {
  const { data: values } = ChangeValues.safeParse(tryParseJsonBytes(document));
  const unproven = (problem: string) => ({ proven: 0, unproven: file.changes.length, problem });
  if (!values) return unproven('the file of values cannot be read');
  if (values.tenant !== file.tenant || values.day !== file.day) {
    return unproven(`the file of values is that of ${values.tenant}, ${values.day}`);
  }
  const digests = new Map(file.changes.map((change) => [change.changeId, 'digest' in change ? change.digest : null]));
  let proven = 0;
  for (const change of values.changes) {
    const digest = digests.get(change.changeId);
    if (digest === null) continue;
    if (digest !== hashOf(change)) return unproven(`the values of ${change.changeId} are not those that were signed`);
    // The same change again proves nothing more.
    digests.set(change.changeId, null);
    proven += 1;
  }
  return { proven, unproven: file.changes.length - proven };
}

export interface ChangesAudit {
  tenant: string;
  days: string[];
  changes: number;
  findings: { about: string; problem: string }[];
}

/** Checks the files of changes of each tenant: signatures, and that no day from the first to the last is missing. */
export function auditChanges(
  files: readonly HeldFiles[],
  { keys, from = '', through }: { keys: readonly TrustedKey[]; from: string | undefined; through: string },
): ChangesAudit[] {
  const tenants = [...new Set(files.map(({ tenant }) => tenant))];
  return tenants.map((tenant) => {
    const held = files.filter((file) => file.tenant === tenant && file.name >= from);
    return auditTenant(
      tenant,
      held.sort((a, b) => (a.name < b.name ? -1 : 1)),
      keys,
      { from, through },
    );
  });
}

function auditTenant(
  tenant: string,
  held: readonly HeldFiles[],
  keys: readonly TrustedKey[],
  { from, through }: { from: string; through: string },
): ChangesAudit {
  const findings: ChangesAudit['findings'] = [];
  const find = (about: string, problem: string) => findings.push({ about, problem });
  let changes = 0;
  let before: PreviousDay | undefined;
  for (const { name: day, document, envelope, refused } of held) {
    const { file, problem } = readChangeLog({ document, envelope }, keys);
    if (problem !== undefined)
      find(day, refused === undefined ? problem : `its file of changes is not read: ${refused}`);
    else if (file && (file.tenant !== tenant || file.day !== day)) {
      find(day, `its file of changes is that of ${file.tenant}, ${file.day}, under another name`);
    }
    if (before && daysLater(before.day, 1) < day) {
      find(daysLater(before.day, 1), `its file of changes is missing, and all up to ${daysLater(day, -1)}`);
    } else if (file && before && file.previous?.sha256 !== before.sha256) {
      find(day, `its file of changes was made after another one of ${before.day} than the one that is here`);
    } else if (file && !before && file.previous && from === '') {
      find(day, `its file of changes follows that of ${file.previous.day}, which is missing (or give --from)`);
    }
    changes += file?.changes.length ?? 0;
    before = { day, sha256: sha256Hex(document) };
  }
  if (before && before.day < through) {
    find(daysLater(before.day, 1), `its file of changes is missing, and all up to ${through}`);
  }
  return { tenant, days: held.map(({ name }) => name), changes, findings };
}
