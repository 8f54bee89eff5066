import { tryParseJsonBytes } from '../../entry/parse-json.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import { dayOf, type LogEntry, logEntryId } from '../../run/log-entry.ts';
import { Addendum } from '../addendum/addendum.ts';
import { type DayLog, daysLater, type PreviousDay } from '../daily-log/daily-log.ts';
import { type AcceptedAudit, checkHeads, checkUnsealed, readAcceptedLists } from './audit-accepted.ts';
import { beyondLimits } from './limits.ts';
import type { TrustedKey } from './trusted-keys.ts';
import type { HeldAddendum } from './verify-addenda.ts';
import { type HeldFiles, readLog } from './verify-daily-log.ts';

export interface AuditTerms {
  keys: readonly TrustedKey[];
  /** The lists of accepted runs of all tenants. */
  lists: readonly HeldFiles[];
  /** Tenants that must be present. A tenant without any file is not noticed otherwise. */
  tenants: readonly string[];
  /** Verifies a bundle on its own. */
  checkBundle(bundle: HeldFiles): string | undefined;
  /** The first day to check; by default the first log, which must have no predecessor. */
  from: string | undefined;
  /** The last day whose log must exist. Otherwise deleted newest logs are not noticed. */
  through: string;
}

interface Finding {
  /** A day or a run. */
  about: string;
  problem: string;
}

export interface TenantAudit {
  tenant: string;
  days: string[];
  /** Bundles that match the log. */
  confirmed: number;
  /** Runs that ended too late for the closed logs. */
  pending: string[];
  /** Runs that were accepted and have not ended, as the last list says. */
  open: string[];
  findings: Finding[];
}

/** Compares every bundle with the logs of its tenant, and the logs with their signatures and with each other. */
export function auditEvidence(
  logs: readonly HeldFiles[],
  bundles: Iterable<HeldFiles>,
  terms: AuditTerms,
): TenantAudit[] {
  const audits = new Map<string, Audit>();
  const auditOf = (tenant: string) => {
    const own = () => logs.filter((log) => log.tenant === tenant);
    const audit = audits.get(tenant) ?? new Audit(tenant, own(), terms);
    audits.set(tenant, audit);
    return audit;
  };
  for (const { tenant } of [...logs, ...terms.lists]) auditOf(tenant);
  for (const bundle of bundles) auditOf(bundle.tenant).check(bundle);
  const gone = terms.tenants.filter((tenant) => !audits.has(tenant));
  return [...[...audits.values()].map((audit) => audit.result()), ...[...new Set(gone)].map(absent)];
}

const absent = (tenant: string): TenantAudit => ({
  tenant,
  days: [],
  confirmed: 0,
  pending: [],
  open: [],
  findings: [{ about: tenant, problem: 'has neither logs nor bundles here' }],
});

/** A bundle or an addendum. */
interface LoggedFile {
  id: string;
  document: Buffer;
  endedAt(): string;
  /** The hash of its last commit. */
  head(): string | undefined;
}

interface Logged {
  entry: LogEntry;
  day: string;
  number: number;
  size: number;
}

class Audit {
  readonly #tenant: string;
  readonly #terms: AuditTerms;
  readonly #days: string[];
  readonly #logged = new Map<string, Logged>();
  readonly #missing: Set<string>;
  readonly #findings: Finding[] = [];
  readonly #pending = new Set<string>();
  /** A run that was sealed again after a crash has several bundles with the same commits, of which one is recorded. */
  readonly #differing = new Map<string, string>();
  readonly #bundles = new Set<string>();
  /** Addenda that were verified with a valid bundle, by their run and SHA-256. */
  readonly #verified = new Set<string>();
  /** Addenda, likewise, that name another bundle than the one beside which they are. */
  readonly #ofOthers = new Map<string, { runId: string; seq: number }>();
  readonly #accepted: AcceptedAudit;
  readonly #confirmed = new Set<string>();

  constructor(tenant: string, logs: readonly HeldFiles[], terms: AuditTerms) {
    this.#tenant = tenant;
    this.#terms = terms;
    const { from = '' } = terms;
    const held = logs.filter(({ name }) => name >= from).sort((a, b) => (a.name < b.name ? -1 : 1));
    this.#days = held.map(({ name }) => name);
    let before: PreviousDay | undefined;
    for (const log of held) before = this.#readDay(log, before);
    this.#findMissingDays();
    this.#missing = new Set(this.#logged.keys());
    this.#accepted = this.#readLists(new Map(held.map(({ name, document }) => [name, sha256Hex(document)])));
  }

  #readLists(logs: ReadonlyMap<string, string>): AcceptedAudit {
    const { keys, from, through, lists } = this.#terms;
    const held = lists.filter(({ tenant }) => tenant === this.#tenant);
    const audit = readAcceptedLists(held, { keys, from, through, logs });
    for (const finding of audit.findings) this.#findings.push(finding);
    if (held.length === 0) {
      this.#find(this.#tenant, 'has no lists of accepted runs here, so a run that was never sealed is not noticed');
    }
    return audit;
  }

  /** Checks the log of a day on its own and against the previous day, and stores its entries. */
  #readDay(held: HeldFiles, before: PreviousDay | undefined): PreviousDay {
    const day = held.name;
    const read = readLog(held, this.#terms.keys);
    if ('problem' in read) this.#find(day, read.problem);
    if (read.log) {
      this.#checkChain(read.log, before);
      for (const [index, entry] of read.log.entries.entries()) {
        const id = logEntryId(entry);
        const earlier = this.#logged.get(id);
        if (earlier) this.#find(day, `has ${id} again, which is in the log of ${earlier.day}`);
        else this.#logged.set(id, { entry, day, number: index + 1, size: read.log.size });
      }
    }
    return { day, sha256: sha256Hex(held.document) };
  }

  #checkChain({ day, previous }: DayLog, before: PreviousDay | undefined): void {
    if (!before) {
      if (previous && this.#terms.from === undefined) {
        this.#find(day, `follows the log of ${previous.day}, which is missing with all before it (or give --from)`);
      }
      return;
    }
    // A missing day in between is reported separately.
    if (before.day !== daysLater(day, -1)) return;
    if (previous?.day !== before.day || previous.sha256 !== before.sha256) {
      this.#find(day, `was made after another log of ${before.day} than the one that is here`);
    }
  }

  #findMissingDays(): void {
    const { from, through } = this.#terms;
    const first = from ?? this.#days[0] ?? through;
    const last = [through, ...this.#days].sort().at(-1) ?? through;
    const there = new Set(this.#days);
    const missing: string[] = [];
    for (let day = first; day <= last; day = daysLater(day, 1)) {
      if (!there.has(day)) missing.push(day);
      else this.#reportMissing(missing.splice(0));
    }
    this.#reportMissing(missing);
  }

  #reportMissing(days: string[]): void {
    const [first, last] = [days[0], days.at(-1)];
    if (first === undefined) return;
    this.#find(first, first === last ? 'its log is missing' : `its log and all up to that of ${last} are missing`);
  }

  check(bundle: HeldFiles): void {
    const { name, document, addenda = [] } = bundle;
    const files = [
      {
        ...{ id: name, document },
        endedAt: () => JSON.parse(document.toString()).run.completedAt,
        head: () => JSON.parse(document.toString()).head?.hash,
      },
      ...addenda.flatMap((held) => {
        const data = addendumIn(held);
        const id = data && logEntryId({ runId: name, addendum: data.commit.seq });
        const { at = '', hash } = data?.commit ?? {};
        return id === undefined ? [] : [{ id, document: held.document, endedAt: () => at, head: () => hash }];
      }),
    ];
    this.#bundles.add(name);
    for (const { id } of files) this.#missing.delete(id);
    const own = this.#withOwnAddenda(bundle);
    const tampered = this.#terms.checkBundle(own);
    if (tampered !== undefined) {
      this.#find(name, tampered);
      return;
    }
    for (const held of own.addenda ?? []) this.#verified.add(fileOf(name, held));
    const rewritten = this.#againstLists(bundle);
    if (rewritten !== undefined) this.#find(name, rewritten);
    for (const file of files) {
      const problem = this.#againstLog(file);
      if (problem !== undefined) this.#find(file.id, problem);
    }
  }

  /** A run may have several bundles, and its addenda are beside each of them. They are checked with the one that they name. */
  #withOwnAddenda(bundle: HeldFiles): HeldFiles {
    if (!bundle.addenda) return bundle;
    const sha256 = sha256Hex(bundle.document);
    const addenda = bundle.addenda.filter((held) => {
      const addendum = addendumIn(held);
      if (!addendum || addendum.bundle === sha256) return true;
      this.#ofOthers.set(fileOf(bundle.name, held), { runId: bundle.name, seq: addendum.commit.seq });
      return false;
    });
    return { ...bundle, addenda };
  }

  /** The lists have the ends of its chain of commits while it was open. */
  #againstLists({ name, document, addenda = [] }: HeldFiles): string | undefined {
    const heads = this.#accepted.heads.get(name);
    if (!heads) return undefined;
    const commits = [
      ...(JSON.parse(document.toString()).commits ?? []),
      ...addenda.flatMap((held) => addendumIn(held)?.commit ?? []),
    ];
    return checkHeads(
      commits.sort((a, b) => a.seq - b.seq),
      heads,
    );
  }

  #againstLog(file: LoggedFile): string | undefined {
    const logged = this.#logged.get(file.id);
    if (!logged) return this.#unlogged(file);
    if (sha256Hex(file.document) !== logged.entry.sha256) {
      const what = logged.entry.addendum === undefined ? 'bundle' : 'addendum';
      const problem = `differs from the sealed ${what}: ${inLog(logged)} has another sha256`;
      if (file.head() !== logged.entry.head) return problem;
      this.#differing.set(file.id, problem);
      return undefined;
    }
    this.#confirmed.add(file.id);
    return undefined;
  }

  /** What ended on or after the last logged day may have been sealed later. What ended earlier must be in a log. */
  #unlogged({ id, endedAt }: LoggedFile): string | undefined {
    const endedOn = dayOf(endedAt());
    const lastDay = this.#days.at(-1) ?? '';
    if (endedOn < (this.#terms.from ?? '')) return undefined;
    if (endedOn < lastDay)
      return `ended on ${endedOn} but is in no log up to ${lastDay}: it was sealed later or added by somebody`;
    this.#pending.add(id);
    return undefined;
  }

  result(): TenantAudit {
    for (const [id, problem] of this.#differing) if (!this.#confirmed.has(id)) this.#find(id, problem);
    for (const [file, { runId, seq }] of this.#ofOthers) {
      if (this.#verified.has(file)) continue;
      this.#find(runId, `was tampered with: addendum ${seq} names another bundle, and is valid with none that is here`);
    }
    for (const id of this.#missing) {
      const logged = this.#logged.get(id);
      if (!logged) continue;
      const { sealedAt, addendum } = logged.entry;
      const what = addendum === undefined ? 'bundle' : 'addendum';
      this.#find(id, `is deleted: ${inLog(logged)}, sealed ${sealedAt}, has no ${what} here`);
    }
    this.#missing.clear();
    const unsealed = this.#findUnsealed();
    return {
      tenant: this.#tenant,
      days: this.#days,
      confirmed: this.#confirmed.size,
      pending: [...this.#pending],
      open: unsealed,
      findings: this.#findings,
    };
  }

  /** Reports runs that were accepted and should have been sealed. Returns those that are still open. */
  #findUnsealed(): string[] {
    const { accepted, open } = this.#accepted;
    const { from = '' } = this.#terms;
    const waiting: string[] = [];
    for (const runId of new Set([...accepted.keys(), ...open.keys()])) {
      const acceptedAt = accepted.get(runId) ?? open.get(runId)?.acceptedAt ?? '';
      if (this.#logged.has(runId) || acceptedAt < from) continue;
      const problem = checkUnsealed(runId, this.#accepted, this.#bundles.has(runId));
      if (problem !== undefined) this.#find(runId, problem);
      else if (!this.#bundles.has(runId)) waiting.push(runId);
    }
    return waiting;
  }

  #find(about: string, problem: string): void {
    this.#findings.push({ about, problem });
  }
}

const fileOf = (runId: string, { document }: HeldAddendum) => `${runId}/${sha256Hex(document)}`;

const addendumIn = ({ document }: HeldAddendum): Addendum | undefined =>
  beyondLimits('addendum', document) === undefined ? Addendum.safeParse(tryParseJsonBytes(document)).data : undefined;

const inLog = ({ day, number, size }: Logged) => `entry ${number} of ${size} in the log of ${day}`;
