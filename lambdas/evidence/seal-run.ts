import { type Clock, isoNow, type Log } from '../entry/ports.ts';
import { assertChain, type Commit } from '../run/commit.ts';
import type { Receipt } from '../run/receipt.ts';
import { isTerminal } from '../run/run.ts';
import type { RunStore } from '../run/run-store.ts';
import { buildBundle } from './bundle.ts';
import { bundleClaim } from './bundle-claim.ts';
import { signClaim } from './dsse.ts';
import type { EvidenceStore, Signer } from './evidence-store.ts';
import { type Exports, exportOrPromise } from './export-run.ts';

export interface Sealer {
  runs: Pick<RunStore, 'loadWhole' | 'receipts' | 'fulfilSeal'>;
  store: EvidenceStore;
  exports: Exports;
  signer: Signer;
  clock: Clock;
  log: Log;
}

/** Seals a finished run: whole chain checked, document written once, signed, recorded. Never early; again gives the same. */
export async function sealRun(
  sealer: Sealer,
  { entryId, tenant, runId }: { entryId: string; tenant: string; runId: string },
): Promise<void> {
  const loaded = await sealer.runs.loadWhole(tenant, runId);
  if (!loaded) return sealer.log.warn('asked to seal a run that does not exist', { tenant, runId });
  const { run, commits } = loaded;
  if (!isTerminal(run)) throw new Error(`run ${runId} is still ${run.status}; evidence is never sealed early`);
  assertChain(run, commits);
  const receipts = await receiptsOf(sealer, tenant, runId, commits);
  const bundle = buildBundle({ ...loaded, run, receipts });
  const written = await sealer.store.putOnce(bundle.documentKey, bundle.document, 'application/json');
  // What was written first is the evidence; what is signed and recorded is always the document that is there.
  const document = written ? bundle.document : await sealer.store.get(bundle.documentKey);
  const claim = bundleClaim(document);
  await sealer.store.putOnce(bundle.envelopeKey, await signClaim(claim, sealer.signer), 'application/json');
  const { documentKey, envelopeKey } = bundle;
  const { sha256 } = claim;
  const promises = await exportOrPromise(sealer, run, loaded);
  const sealedAt = isoNow(sealer.clock);
  const record = { documentKey, envelopeKey, sha256, sizeBytes: document.length, sealedAt };
  const logged = { runId, sha256, head: run.headHash, count: run.seq, sealedAt };
  await sealer.runs.fulfilSeal(entryId, tenant, runId, record, { logged, promises });
}

/** The receipts of every write the run began, undone ones and undoing ones too, and those of others that it rested on. */
async function receiptsOf(
  { runs }: Sealer,
  tenant: string,
  runId: string,
  commits: readonly Commit[],
): Promise<Receipt[]> {
  const events = commits.flatMap((commit) => commit.events);
  const begun = events.flatMap((event) => (event.type === 'write.intended' ? [event.receiptKey] : []));
  const restedOn = new Map(
    events.flatMap((event) => (event.type === 'write.reused' ? [[event.receiptKey, event.firstRunId]] : [])),
  );
  const found = await runs.receipts(tenant, [...begun, ...restedOn.keys()]);
  // A key may have passed to another run since: that receipt is the other's evidence, unless this run rested on it.
  return found
    .filter((receipt) => {
      const rested = restedOn.get(receipt.key) === receipt.runId && receipt.outcome === 'succeeded';
      return receipt.runId === runId || rested;
    })
    .sort((a, b) => a.stepIndex - b.stepIndex || (a.key < b.key ? -1 : 1));
}
