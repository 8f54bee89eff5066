import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { daysLater } from '../../../lambdas/evidence/daily-log/daily-log.ts';
import { auditEvidence, type TenantAudit } from '../../../lambdas/evidence/verify/audit-evidence.ts';
import type { TrustedKey } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import type { HeldFiles } from '../../../lambdas/evidence/verify/verify-daily-log.ts';
import { dayOf } from '../../../lambdas/run/log-entry.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, UsageError } from '../failure.ts';
import { KEY_OPTION, readKeys, readOrFail, reasonOf, unreadable } from './bundle-file.ts';
import { counted } from './evidence-text.ts';

/** A log is written within a little more than an hour after its day. */
const LOG_DUE_AFTER_MS = 2 * 60 * 60 * 1000;

const LOG_FILE = /(?:^|\/)log\/([^/]+)\/(\d{4}-\d\d-\d\d)\.json$/;
const BUNDLE_FILE = /(?:^|\/)evidence\/([^/]+)\/([^/]+)\/bundle\.json$/;

export const evidenceAudit: Command = {
  name: 'evidence audit',
  takes: ['FOLDER'],
  says: 'hold a copy of the evidence bucket against its daily logs',
  details: [
    'FOLDER is what `aws s3 sync s3://<bucket> FOLDER` gives: bundles under evidence/, logs under log/.',
    'It names what was deleted, changed or slipped in; nothing is asked over the network. Name every tenant',
    'there should be: one whose logs and bundles are all gone leaves nothing that could be missed.',
    'Exit codes: 0 everything is there and as it was sealed, 1 something is not, 2 it cannot be read.',
  ].join('\n'),
  options: {
    key: KEY_OPTION,
    tenant: { value: 'TENANT', many: true, says: 'a tenant that must be there; may be given more than once' },
    from: { value: 'DAY', says: 'the first day to look at; without it logs must go back to the very first' },
    through: { value: 'DAY', says: 'the last day whose log must be there; without it yesterday (UTC)' },
  },
  async run(call) {
    const key = call.text('key');
    if (key === undefined) throw new UsageError('without --key anybody could have signed: give the public key, a PEM');
    const keys = readKeys(key);
    const folder = call.positional(0);
    const files = filesIn(folder);
    const logs = [...held(folder, files, LOG_FILE)];
    const tenants = call.texts('tenant');
    if (logs.length === 0 && tenants.length === 0) {
      throw unreadable(`there is no log under ${folder}; it needs a folder log/<tenant>/`);
    }
    const audits = auditEvidence(logs, held(folder, files, BUNDLE_FILE), {
      keys,
      tenants,
      checkBundle: (bundle) => checkBundle(bundle, keys),
      from: dayGiven(call, 'from'),
      through: dayGiven(call, 'through') ?? lastDueDay(Date.now()),
    });
    if (call.json) call.printJson({ tenants: audits });
    else printAudits(printable(audits), tenants, call);
    return audits.some(({ findings }) => findings.length > 0) ? EXIT.failed : EXIT.ok;
  },
};

function filesIn(folder: string): string[] {
  try {
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    return files.map((file) => file.replaceAll('\\', '/')).sort();
  } catch (cause) {
    throw unreadable(`${folder} is not a folder that can be read: ${reasonOf(cause)}`);
  }
}

/** One at a time: a folder may hold more bundles than fit into memory. */
function* held(folder: string, files: readonly string[], pattern: RegExp): Iterable<HeldFiles> {
  for (const file of files) {
    const [, tenant, name] = pattern.exec(file) ?? [];
    if (!tenant || !name) continue;
    const envelope = join(folder, file.replace(/json$/, 'dsse.json'));
    yield {
      tenant,
      name,
      document: readOrFail(join(folder, file), 'the file'),
      envelope: existsSync(envelope) ? readOrFail(envelope, 'the signed envelope') : undefined,
    };
  }
}

function checkBundle({ tenant, name, document, envelope }: HeldFiles, keys: readonly TrustedKey[]): string | undefined {
  if (!envelope) return 'is not signed: its envelope is missing';
  const verdict = verifyBundle({ document, envelope, keys });
  switch (verdict.verdict) {
    case 'tampered':
      return `was tampered with: ${verdict.entry} ${verdict.problem}`;
    case 'unreadable':
      return `cannot be read: ${verdict.problem}`;
    case 'unproven':
      return 'is not signed by that key';
    case 'valid': {
      const { summary } = verdict;
      const isNamedSo = summary.tenant === tenant && summary.runId === name;
      return isNamedSo ? undefined : `is the bundle of ${summary.tenant}/${summary.runId} under another name`;
    }
  }
}

function dayGiven(call: Call, option: 'from' | 'through'): string | undefined {
  const day = call.text(option);
  if (day === undefined || (/^\d{4}-\d\d-\d\d$/.test(day) && !Number.isNaN(Date.parse(day)))) return day;
  throw new UsageError(`--${option} is a day, as 2026-03-01, not "${day}"`);
}

const lastDueDay = (nowMs: number) => daysLater(dayOf(new Date(nowMs - LOG_DUE_AFTER_MS).toISOString()), -1);

function printAudits(audits: readonly TenantAudit[], named: readonly string[], call: Call): void {
  for (const audit of audits) printAudit(audit, call);
  const seen = `${counted(audits.length, 'tenant')}: ${audits.map(({ tenant }) => tenant).join(', ')}`;
  const unnamed =
    named.length === 0 ? '. None was named with --tenant: one that is gone as a whole would not show' : '';
  call.terminal.print(call.terminal.paint('quiet', `${seen}${unnamed}`));
}

function printAudit({ tenant, days, confirmed, pending, findings }: TenantAudit, { terminal }: Call): void {
  for (const { about, problem } of findings) {
    terminal.print(`${terminal.paint('strong', about)}  ${terminal.paint('bad', problem)}`);
  }
  const verdict = findings.length === 0 ? 'nothing missing or changed' : counted(findings.length, 'problem');
  const logged = days.length === 0 ? 'no logs' : `${counted(days.length, 'log')}, ${days[0]} to ${days.at(-1)}`;
  const waiting = pending.length === 0 ? '' : `, ${pending.length} not in a log yet`;
  const tone = findings.length === 0 ? 'good' : 'bad';
  terminal.print(
    `${tenant}: ${terminal.paint(tone, verdict)} (${logged}; ${counted(confirmed, 'bundle')} as sealed${waiting})`,
  );
}
