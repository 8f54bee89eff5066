import { tryParseJsonFile } from '../../entry/parse-json.ts';
import { type Clock, isoNow, type Log } from '../../entry/ports.ts';
import { hashOf } from '../../run/canonical-json.ts';
import { CountersignError } from '../../run/errors.ts';
import { isTerminal, type TerminalRun } from '../../run/run.ts';
import type { RunStore } from '../../run/run-store.ts';
import type { EvidenceStore, Signer } from '../evidence-store.ts';
import { ExportDraft, type Exports, exportOrEnqueue } from '../export/export-run.ts';
import { signOnce } from '../signing/dsse.ts';
import { checkDocument } from '../verify/check-document.ts';
import { verifyBundle } from '../verify/verify-bundle.ts';
import { type BundleClaim, bundleClaim } from './bundle-claim.ts';
import { BundleDraft, documentKey, envelopeKey } from './bundle-draft.ts';

/** A receipt may hold a whole answer of its target: only so many are in memory at a time. */
const RECEIPTS_AT_A_TIME = 25;

export interface Sealer {
  runs: Pick<RunStore, 'everyRow' | 'receipts' | 'completeSeal'>;
  store: EvidenceStore;
  exports: Exports;
  signer: Signer;
  clock: Clock;
  log: Log;
}

/**
 * Seals a finished run: checked as an auditor would, written once, signed, recorded. Never early; again gives the same.
 * Returns the run, unless there is none.
 */
export async function sealRun(
  sealer: Sealer,
  { entryId, tenant, runId }: { entryId: string; tenant: string; runId: string },
): Promise<TerminalRun | undefined> {
  const draft = new BundleDraft();
  const exported = new ExportDraft(sealer.exports.wanted);
  for await (const row of sealer.runs.everyRow(tenant, runId)) {
    draft.take(row);
    exported.take(row);
  }
  const { run } = draft;
  if (!run) {
    sealer.log.warn('asked to seal a run that does not exist', { tenant, runId });
    return undefined;
  }
  if (!isTerminal(run)) throw new Error(`run ${runId} is still ${run.status}; evidence is never sealed early`);
  await takeReceipts(sealer, tenant, draft);
  const document = await keepDocument(sealer, run, draft.build(run));
  const claim = bundleClaim(document);
  await signOnce(sealer, {
    key: envelopeKey(run),
    claim,
    problem: (envelope, keys) => auditProblem({ document, envelope, keys }),
  });
  const { sha256 } = claim;
  const outboxEntries = await exportOrEnqueue(sealer, run, exported);
  const sealedAt = isoNow(sealer.clock);
  const keys = { documentKey: documentKey(run), envelopeKey: envelopeKey(run) };
  const record = { ...keys, sha256, sizeBytes: document.length, sealedAt };
  const logged = { runId, sha256, head: run.headHash, count: run.seq, sealedAt };
  await sealer.runs.completeSeal(entryId, tenant, runId, record, { logged, outboxEntries });
  return run;
}

async function takeReceipts({ runs }: Sealer, tenant: string, draft: BundleDraft): Promise<void> {
  const keys = draft.receiptKeys;
  for (let at = 0; at < keys.length; at += RECEIPTS_AT_A_TIME) {
    for (const receipt of await runs.receipts(tenant, keys.slice(at, at + RECEIPTS_AT_A_TIME))) {
      draft.takeReceipt(receipt);
    }
  }
}

/**
 * What was written first is the evidence, by whichever version of this runtime, if it is sound and of this very run with
 * this very head: a signature vouches for what the run's rows say, not for whatever lies under its name.
 */
async function keepDocument({ store }: Sealer, run: TerminalRun, built: Buffer): Promise<Buffer> {
  const key = documentKey(run);
  const due = bundleClaim(built);
  const problem = problemOf(built, due);
  if (problem !== undefined) {
    throw new CountersignError(
      'CHAIN_BROKEN',
      `the rows of run ${run.runId} disagree: ${problem}; find out who wrote them`,
    );
  }
  if (await store.putOnce(key, built, 'application/json')) return built;
  const there = await store.get(key);
  if (there.equals(built)) return built;
  const foreign = problemOf(there, due);
  if (foreign === undefined) return there;
  throw new CountersignError(
    'CHAIN_BROKEN',
    `${key} is not the evidence of that run: ${foreign}; find out who wrote it`,
  );
}

/** What is wrong with a document as the evidence of a run that is to be signed so, its own index apart. */
function problemOf(document: Buffer, { subject, sha256, predicate }: BundleClaim): string | undefined {
  const parsed = tryParseJsonFile(document);
  const { index = null } = Object(parsed) as { index?: unknown };
  const found = checkDocument(document, parsed, { ...predicate, index: hashOf(index), subject, sha256, keyId: '' });
  return found && `${found.entry} ${found.problem}`;
}

function auditProblem(held: Parameters<typeof verifyBundle>[0]): string | undefined {
  const verdict = verifyBundle(held);
  if (verdict.verdict === 'valid') return undefined;
  return verdict.verdict === 'tampered' ? `${verdict.entry} ${verdict.problem}` : verdict.verdict;
}
