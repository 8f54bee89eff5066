import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { daysLater } from '../../lambdas/evidence/daily-log.ts';
import { auditEvidence, type TenantAudit } from '../../lambdas/evidence/daily-log-audit.ts';
import type { HeldFiles } from '../../lambdas/evidence/daily-log-verify.ts';
import type { TrustedKey } from '../../lambdas/evidence/dsse.ts';
import { verifyBundle } from '../../lambdas/evidence/verify-bundle.ts';
import { dayOf } from '../../lambdas/run/log-entry.ts';
import type { Call, Command } from './command.ts';
import { KEY_OPTION, readKeys, unreadable } from './evidence-file.ts';
import { counted } from './evidence-words.ts';
import { EXIT, UsageError } from './failure.ts';
import { printable } from './terminal.ts';

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
    'It names what was deleted, changed or slipped in; nothing is asked over the network.',
    'Exit codes: 0 everything is there and as it was sealed, 1 something is not, 2 it cannot be read.',
  ].join('\n'),
  options: {
    key: KEY_OPTION,
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
    if (logs.length === 0) throw unreadable(`there is no log under ${folder}; it needs a folder log/<tenant>/`);
    const audits = auditEvidence(logs, held(folder, files, BUNDLE_FILE), {
      keys,
      bundleFlaw: (bundle) => bundleFlaw(bundle, keys),
      from: dayGiven(call, 'from'),
      through: dayGiven(call, 'through') ?? lastDueDay(Date.now()),
    });
    if (call.json) call.printJson({ tenants: audits });
    else for (const audit of audits) printAudit(printable(audit), call);
    return audits.some(({ findings }) => findings.length > 0) ? EXIT.failed : EXIT.ok;
  },
};

function filesIn(folder: string): string[] {
  if (!existsSync(folder) || !statSync(folder).isDirectory()) throw unreadable(`${folder} is not a folder`);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return files.map((file) => file.replaceAll('\\', '/')).sort();
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
      document: readFileSync(join(folder, file)),
      envelope: existsSync(envelope) ? readFileSync(envelope) : undefined,
    };
  }
}

function bundleFlaw({ tenant, name, document, envelope }: HeldFiles, keys: readonly TrustedKey[]): string | undefined {
  if (!envelope) return 'is not signed: its envelope is missing';
  const verdict = verifyBundle({ document, envelope, keys });
  switch (verdict.verdict) {
    case 'tampered':
      return `was tampered with: ${verdict.flaw.entry} ${verdict.flaw.problem}`;
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
