import { tryParseJsonBytes } from '../../entry/parse-json.ts';
import type { Log } from '../../entry/ports.ts';
import type { TextArchive } from '../../pipeline/text-archive.ts';
import { CountersignError } from '../../run/errors.ts';
import { isTerminal, type TerminalRun } from '../../run/run.ts';
import type { RunStore } from '../../run/run-store.ts';
import type { RunTrace, RunTraces } from '../../telemetry/export-traces.ts';
import { ExportDraft, type Exports } from '../export/export-run.ts';
import { receiptsOf } from '../receipts-of-run.ts';
import { checkDocument } from '../verify/check-document.ts';
import { checkRules } from '../verify/rules/check-rules.ts';
import type { RulesReport } from '../verify/rules/rule.ts';
import { type BundleClaim, bundleClaim, withBrokenRules } from './bundle-claim.ts';
import { BundleDraft } from './bundle-draft.ts';
import type { EvidenceDocument } from './document.ts';

/** Which run to seal. `again`: the run was not sealed soon after its end, so the outbox entry with this id is stored. */
export interface SealRequest {
  entryId: string;
  tenant: string;
  runId: string;
  again?: boolean | undefined;
}

export interface BundleReads {
  runs: Pick<RunStore, 'everyRow' | 'receipts' | 'completeOutboxEntry' | 'clearSealDue'>;
  exports: Pick<Exports, 'wanted'>;
  /** Absent in a stage without traces. */
  traces?: Pick<RunTraces, 'begin'> | undefined;
  texts: Pick<TextArchive, 'keepTextsOf'>;
  log: Log;
}

/** A verified document that is not signed yet, and what else is made of the rows of its run. */
export interface DraftedBundle {
  request: SealRequest;
  run: TerminalRun;
  document: Buffer;
  claim: BundleClaim;
  head: EvidenceDocument['head'];
  exported: ExportDraft;
  trace: RunTrace | undefined;
}

/** Reads a run and makes its document. Returns the run if it is sealed already, and undefined if there is no such run. */
export async function draftBundle(
  reads: BundleReads,
  request: SealRequest,
): Promise<DraftedBundle | { sealed: TerminalRun } | undefined> {
  const { entryId, tenant, runId, again } = request;
  const draft = new BundleDraft();
  const exported = new ExportDraft(reads.exports.wanted);
  const trace = reads.traces?.begin();
  for await (const row of reads.runs.everyRow(tenant, runId)) {
    draft.take(row);
    exported.take(row);
    trace?.take(row);
  }
  const { run } = draft;
  if (!run) {
    reads.log.warn('cannot seal a run that does not exist', { tenant, runId });
    return undefined;
  }
  if (draft.isSealed && isTerminal(run)) {
    if (again) await reads.runs.completeOutboxEntry(entryId);
    if (run.sealDueAt !== undefined) await reads.runs.clearSealDue(run);
    return { sealed: run };
  }
  if (!isTerminal(run)) throw new Error(`run ${runId} is still ${run.status}; only a finished run can be sealed`);
  for await (const receipt of receiptsOf(reads.runs, tenant, draft.receiptKeys)) {
    draft.takeReceipt(receipt);
    exported.takeReceipt(receipt);
  }
  const document = draft.build(run);
  const claim = checkedClaim(run, document);
  await reads.texts.keepTextsOf(run, draft.texts);
  return { request, run, document, claim, head: draft.head, exported, trace };
}

/** Only a document that agrees with itself is signed: the bytes are read again, as a verifier reads them, and once for all checks. */
function checkedClaim(run: TerminalRun, document: Buffer): BundleClaim {
  const read = tryParseJsonBytes(document);
  const claim = bundleClaim(document, read as EvidenceDocument);
  const { subject, sha256, predicate } = claim;
  const found = checkDocument(document, read, { ...predicate, subject, sha256, keyId: '' });
  if (found) {
    throw new CountersignError(
      'CHAIN_BROKEN',
      `the rows of run ${run.runId} contradict each other: ${found.entry} ${found.problem}. Find out who changed them`,
    );
  }
  const { broken } = checkRules(read as EvidenceDocument);
  assertRules(run, broken);
  return withBrokenRules(claim, [...new Set(broken.map(({ rule }) => rule))]);
}

/** A run that broke a rule is signed only as such, and only after an owner has accepted that it broke these rules. */
function assertRules({ runId, brokenRulesAccepted }: TerminalRun, broken: RulesReport['broken']): void {
  const others = broken.filter(({ rule }) => !brokenRulesAccepted?.rules.includes(rule));
  if (others.length === 0) return;
  const each = others.map(({ rule, name, entry, problem }) => `rule ${rule} (${name}): ${entry} ${problem}`);
  throw new CountersignError(
    'RULES_BROKEN',
    `run ${runId} is not sealed, because it broke ${each.join('; ')}. See RUNBOOK, "A run broke a rule"`,
  );
}
