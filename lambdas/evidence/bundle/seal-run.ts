import { tryParseJsonFile } from '../../entry/parse-json.ts';
import { type Clock, isoNow, type Log } from '../../entry/ports.ts';
import type { TextArchive } from '../../pipeline/text-archive.ts';
import { hashOf } from '../../run/canonical-json.ts';
import { CountersignError } from '../../run/errors.ts';
import { isTerminal, type TerminalRun } from '../../run/run.ts';
import type { RunStore } from '../../run/run-store.ts';
import type { RunTraces } from '../../telemetry/export-traces.ts';
import type { EvidenceStore, Signer } from '../evidence-store.ts';
import { ExportDraft, type Exports, exportOrEnqueue } from '../export/export-run.ts';
import { receiptsOf } from '../receipts-of-run.ts';
import { signOnce } from '../signing/dsse.ts';
import { checkDocument } from '../verify/check-document.ts';
import { checkRules } from '../verify/rules/check-rules.ts';
import type { RulesReport } from '../verify/rules/rule.ts';
import { verifyBundle } from '../verify/verify-bundle.ts';
import { type BundleClaim, bundleClaim } from './bundle-claim.ts';
import { BundleDraft, documentKey, envelopeKey } from './bundle-draft.ts';

export interface Sealer {
  runs: Pick<RunStore, 'everyRow' | 'receipts' | 'completeSeal' | 'completeOutboxEntry'>;
  store: EvidenceStore;
  exports: Exports;
  /** Absent in a stage without traces. */
  traces?: Pick<RunTraces, 'begin'> | undefined;
  texts: Pick<TextArchive, 'keepTextsOf'>;
  signer: Signer;
  clock: Clock;
  log: Log;
}

/**
 * Seals a finished run: verifies, writes and signs its document, and records that. Sealing again gives the same result.
 * Returns undefined if there is no such run.
 */
export async function sealRun(
  sealer: Sealer,
  { entryId, tenant, runId }: { entryId: string; tenant: string; runId: string },
): Promise<TerminalRun | undefined> {
  const draft = new BundleDraft();
  const exported = new ExportDraft(sealer.exports.wanted);
  const trace = sealer.traces?.begin();
  for await (const row of sealer.runs.everyRow(tenant, runId)) {
    draft.take(row);
    exported.take(row);
    trace?.take(row);
  }
  const { run } = draft;
  if (!run) {
    sealer.log.warn('cannot seal a run that does not exist', { tenant, runId });
    return undefined;
  }
  if (draft.isSealed && isTerminal(run)) {
    await sealer.runs.completeOutboxEntry(entryId);
    return run;
  }
  if (!isTerminal(run)) throw new Error(`run ${runId} is still ${run.status}; only a finished run can be sealed`);
  for await (const receipt of receiptsOf(sealer.runs, tenant, draft.receiptKeys)) {
    draft.takeReceipt(receipt);
    exported.takeReceipt(receipt);
  }
  const document = await storeDocument(sealer, run, draft.build(run));
  await sealer.texts.keepTextsOf(run, draft.texts);
  const claim = bundleClaim(document, [...new Set(brokenIn(document).map(({ rule }) => rule))]);
  await signOnce(sealer, {
    key: envelopeKey(run),
    claim,
    problem: (envelope, keys) => auditProblem({ document, envelope, keys }),
  });
  const { sha256 } = claim;
  const { artifacts, outboxEntries } = await exportOrEnqueue(sealer, run, exported);
  const sealedAt = isoNow(sealer.clock);
  const keys = { documentKey: documentKey(run), envelopeKey: envelopeKey(run) };
  const record = { ...keys, sha256, sizeBytes: document.length, sealedAt, ...(artifacts.length > 0 && { artifacts }) };
  const logged = { runId, sha256, head: draft.head.hash, count: draft.head.count, sealedAt };
  await sealer.runs.completeSeal(entryId, tenant, runId, record, { logged, outboxEntries });
  // Last: a collector that fails or is slow cannot affect evidence.
  await trace?.export(run);
  return run;
}

const brokenIn = (document: Buffer): RulesReport['broken'] => checkRules(JSON.parse(document.toString())).broken;

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

/**
 * Stores the document, or returns the stored one: the first document is the evidence, also if another version wrote it.
 * It must be valid and of the same run with the same head, because only documents that agree with the rows are signed.
 */
async function storeDocument({ store }: Sealer, run: TerminalRun, built: Buffer): Promise<Buffer> {
  const key = documentKey(run);
  const due = bundleClaim(built);
  const problem = problemOf(built, due);
  if (problem !== undefined) {
    throw new CountersignError(
      'CHAIN_BROKEN',
      `the rows of run ${run.runId} contradict each other: ${problem}. Find out who changed them`,
    );
  }
  assertRules(run, brokenIn(built));
  if (await store.putOnce(key, built, 'application/json')) return built;
  const there = await store.get(key);
  if (there.equals(built)) return built;
  const foreign = problemOf(there, due);
  if (foreign === undefined) return there;
  throw new CountersignError(
    'CHAIN_BROKEN',
    `${key} is not the evidence of that run: ${foreign}. Find out who wrote it`,
  );
}

/** Checks a document against the claim to sign. The index is compared with the entries only. */
function problemOf(document: Buffer, { subject, sha256, predicate }: BundleClaim): string | undefined {
  const parsed = tryParseJsonFile(document);
  const { index = null } = Object(parsed) as { index?: unknown };
  const found = checkDocument(document, parsed, { ...predicate, index: hashOf(index), subject, sha256, keyId: '' });
  return found && `${found.entry} ${found.problem}`;
}

function auditProblem(held: Parameters<typeof verifyBundle>[0]): string | undefined {
  const verdict = verifyBundle(held);
  if ('summary' in verdict && verdict.verdict !== 'unproven') return undefined;
  return verdict.verdict === 'tampered' ? `${verdict.entry} ${verdict.problem}` : verdict.verdict;
}
