import { tryParseJsonFile } from '../../entry/parse-json.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import { CHANGE_LOG_FORMAT, ChangeLog, changeLogClaim, changeLogDocument } from '../change-log/change-log.ts';
import { daysLater, type PreviousDay } from '../daily-log/daily-log.ts';
import type { TrustedKey } from './trusted-keys.ts';
import { checkSignedDay, type HeldFiles } from './verify-daily-log.ts';

/** True for a file of changes; bundles and logs have other formats. */
export function isChangeLog(document: Buffer): boolean {
  const json = tryParseJsonFile(document) as { format?: unknown } | undefined;
  return json?.format === CHANGE_LOG_FORMAT;
}

/** Undefined if it is no file of changes in its canonical form. */
export function parseChangeLog(document: Buffer): ChangeLog | undefined {
  const { data } = ChangeLog.safeParse(tryParseJsonFile(document));
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
  for (const { name: day, document, envelope } of held) {
    const { file, problem } = readChangeLog({ document, envelope }, keys);
    if (problem !== undefined) find(day, problem);
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
