import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { tryParseJsonBytes } from '../../../lambdas/entry/parse-json.ts';
import { bundlesIn } from '../../../lambdas/evidence/bundle/bundle-object.ts';
import { daysLater } from '../../../lambdas/evidence/daily-log/daily-log.ts';
import { auditEvidence, type TenantAudit } from '../../../lambdas/evidence/verify/audit-evidence.ts';
import type { TrustedKey } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import { auditChanges, type ChangesAudit } from '../../../lambdas/evidence/verify/verify-change-log.ts';
import type { HeldFiles } from '../../../lambdas/evidence/verify/verify-daily-log.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { dayOf } from '../../../lambdas/run/log-entry.ts';
import { counted } from '../../terminal/counted.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../failure.ts';
import { fileFailure } from '../read-file.ts';
import { readAddenda, readKeys, readLimited, readSigned, unreadable } from './bundle-file.ts';

/** The log of a day is written a little more than an hour after the day ends. */
const LOG_DUE_AFTER_MS = 2 * 60 * 60 * 1000;

const LOG_FILE = /(?:^|\/)log\/([^/]+)\/(\d{4}-\d\d-\d\d)\.json$/;
const ACCEPTED_FILE = /(?:^|\/)log\/([^/]+)\/accepted\/(\d{4}-\d\d-\d\dT\d\d)\.json$/;
const CHANGES_FILE = /(?:^|\/)log\/([^/]+)\/changes\/(\d{4}-\d\d-\d\d)\.json$/;
/** Several bundles, as lines. Earlier releases wrote two files for each run. */
const BUNDLES_FILE = /(?:^|\/)evidence\/([^/]+)\/bundles\/[^/]+\/([0-9a-f]{64})\.jsonl$/;
const BUNDLE_FILE = /(?:^|\/)evidence\/([^/]+)\/([^/]+)\/bundle\.json$/;

export function auditFolder(call: Call): ExitCode {
  const key = call.option('key');
  if (key === undefined) throw new UsageError('--key is required: the file with the public key (PEM)');
  const keys = readKeys(key);
  const folder = call.arg(0);
  const files = filesIn(folder);
  const logs = [...held(folder, files, LOG_FILE)];
  const tenants = call.options('tenant');
  if (logs.length === 0 && tenants.length === 0) {
    throw unreadable(`${folder} contains no logs; expected log/<tenant>/<day>.json`);
  }
  const from = dayGiven(call, 'from');
  const through = dayGiven(call, 'through') ?? lastDueDay(Date.now());
  const audits = auditEvidence(logs, bundlesOf(folder, files), {
    keys,
    lists: [...held(folder, files, ACCEPTED_FILE)],
    tenants,
    checkBundle: (bundle) => checkBundle(bundle, keys),
    from,
    through,
  });
  const changes = auditChanges([...held(folder, files, CHANGES_FILE)], { keys, from, through });
  if (call.json) call.printJson({ tenants: audits, changes });
  else {
    printAudits(printable(audits), tenants, call);
    for (const audit of printable(changes)) printChangesAudit(audit, call);
  }
  return [...audits, ...changes].some(({ findings }) => findings.length > 0) ? EXIT.failed : EXIT.ok;
}

function filesIn(folder: string): string[] {
  try {
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    return files.map((file) => file.replaceAll('\\', '/')).sort();
  } catch (cause) {
    throw fileFailure('read', folder, cause);
  }
}

/** A generator: the bundles of a folder may not fit into memory. */
function* held(folder: string, files: readonly string[], pattern: RegExp): Iterable<HeldFiles> {
  for (const file of files) {
    const [, tenant, name] = pattern.exec(file) ?? [];
    if (!tenant || !name) continue;
    yield {
      tenant,
      name,
      ...readSigned(join(folder, file), pattern === BUNDLE_FILE ? 'document' : 'log'),
      ...(pattern === BUNDLE_FILE && { addenda: readAddenda(join(folder, file)) }),
    };
  }
}

function* bundlesOf(folder: string, files: readonly string[]): Iterable<HeldFiles> {
  yield* held(folder, files, BUNDLE_FILE);
  for (const file of files) {
    const [, tenant, hash] = BUNDLES_FILE.exec(file) ?? [];
    if (!tenant || !hash) continue;
    const { content, refused } = readLimited(join(folder, file), 'bundles');
    const changed = sha256Hex(content) === hash ? undefined : 'its name is not the SHA-256 of its content';
    const problem = refused ?? changed;
    if (problem !== undefined) yield { tenant, name: hash, document: content, envelope: undefined, refused: problem };
    for (const { document, envelope } of bundlesIn(content)) {
      const name = runIdIn(document) ?? hash;
      const beside = join(folder, file, '../../..', name);
      const addenda = existsSync(beside) ? readAddenda(join(beside, 'bundle.json')) : [];
      yield { tenant, name, document, envelope, addenda };
    }
  }
}

/** Names the finding; `checkBundle` compares it with the signature. */
function runIdIn(document: Buffer): string | undefined {
  const { run } = Object(tryParseJsonBytes(document)) as { run?: { runId?: unknown } };
  const { runId } = Object(run) as { runId?: unknown };
  return typeof runId === 'string' && RUN_ID.test(runId) ? runId : undefined;
}

/** Anything else could name another folder. */
const RUN_ID = /^[\w-]+$/;

function checkBundle(held: HeldFiles, keys: readonly TrustedKey[]): string | undefined {
  const { tenant, name, document, envelope, addenda, refused } = held;
  if (refused !== undefined) return `cannot be read: ${refused}`;
  if (!envelope) return 'is not signed: the envelope is missing';
  const verdict = verifyBundle({ document, envelope, keys, ...(addenda && { addenda }) });
  switch (verdict.verdict) {
    case 'tampered':
      return `was tampered with: ${verdict.entry} ${verdict.problem}`;
    case 'unreadable':
      return `cannot be read: ${verdict.problem}`;
    case 'unproven':
      return 'is not signed with a trusted key';
    case 'rules_broken': {
      const each = verdict.rules.broken.map(
        (broken) => `${broken.rule}, ${broken.name}: ${broken.entry} ${broken.problem}`,
      );
      return `is intact, but the run broke rule ${each.join('; rule ')}`;
    }
    case 'valid': {
      const { summary } = verdict;
      const hasItsName = summary.tenant === tenant && summary.runId === name;
      return hasItsName ? undefined : `is the bundle of ${summary.tenant}/${summary.runId} under another name`;
    }
  }
}

function dayGiven(call: Call, option: 'from' | 'through'): string | undefined {
  const day = call.option(option);
  if (day === undefined || (/^\d{4}-\d\d-\d\d$/.test(day) && !Number.isNaN(Date.parse(day)))) return day;
  throw new UsageError(`--${option} must be a day, for example 2026-03-01, not "${day}"`);
}

const lastDueDay = (nowMs: number) => daysLater(dayOf(new Date(nowMs - LOG_DUE_AFTER_MS).toISOString()), -1);

function printAudits(audits: readonly TenantAudit[], named: readonly string[], call: Call): void {
  for (const audit of audits) printAudit(audit, call);
  const seen = `${counted(audits.length, 'tenant')}: ${audits.map(({ tenant }) => tenant).join(', ')}`;
  const unnamed =
    named.length === 0 ? '. No --tenant was given: a tenant whose files were all deleted is not reported' : '';
  call.terminal.print(call.terminal.paint('quiet', `${seen}${unnamed}`));
}

function printChangesAudit({ tenant, days, changes, findings }: ChangesAudit, { terminal }: Call): void {
  for (const { about, problem } of findings) {
    terminal.print(`${terminal.paint('strong', about)}  ${terminal.paint('bad', problem)}`);
  }
  const verdict = findings.length === 0 ? 'nothing missing or changed' : counted(findings.length, 'problem');
  const tone = findings.length === 0 ? 'good' : 'bad';
  const logged = `${counted(days.length, 'file')}, ${days[0]} to ${days.at(-1)}; ${counted(changes, 'change')}`;
  terminal.print(`${tenant}, changes of definitions: ${terminal.paint(tone, verdict)} (${logged})`);
}

function printAudit({ tenant, days, confirmed, pending, open, findings }: TenantAudit, { terminal }: Call): void {
  for (const { about, problem } of findings) {
    terminal.print(`${terminal.paint('strong', about)}  ${terminal.paint('bad', problem)}`);
  }
  const verdict = findings.length === 0 ? 'nothing missing or changed' : counted(findings.length, 'problem');
  const logged = days.length === 0 ? 'no logs' : `${counted(days.length, 'log')}, ${days[0]} to ${days.at(-1)}`;
  const waiting = pending.length === 0 ? '' : `, ${pending.length} not in a log yet`;
  const unsealed = open.length === 0 ? '' : `; ${counted(open.length, 'accepted run')} not ended`;
  const tone = findings.length === 0 ? 'good' : 'bad';
  terminal.print(
    `${tenant}: ${terminal.paint(tone, verdict)} (${logged}; ${counted(confirmed, 'bundle')} as sealed${waiting}${unsealed})`,
  );
}
