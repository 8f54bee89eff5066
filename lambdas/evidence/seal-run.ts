import { type Clock, isoNow, type Log } from '../entry/ports.ts';
import { sha256Hex } from '../run/canonical-json.ts';
import { assertChain } from '../run/commit.ts';
import { isTerminal } from '../run/run.ts';
import type { RunStore } from '../run/run-store.ts';
import { receiptKeyOf } from '../run/step.ts';
import { buildBundle, signBundle } from './bundle.ts';
import type { EvidenceStore, Signer } from './evidence-store.ts';

export interface Sealer {
  runs: Pick<RunStore, 'loadWhole' | 'receipts' | 'fulfilSeal'>;
  store: EvidenceStore;
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
  const { run, trigger, steps, commits } = loaded;
  if (!isTerminal(run)) throw new Error(`run ${runId} is still ${run.status}; evidence is never sealed early`);
  assertChain(run, commits);
  const found = await sealer.runs.receipts(
    tenant,
    steps.flatMap((step) => receiptKeyOf(step) ?? []),
  );
  // The key of a write that never became ours may be held by another run: its receipt is that run's evidence, not this one's.
  const restedOn = new Set(steps.flatMap((step) => (step.status === 'succeeded' ? (receiptKeyOf(step) ?? []) : [])));
  const receipts = found.filter((receipt) => receipt.runId === runId || restedOn.has(receipt.key));
  receipts.sort((a, b) => a.stepIndex - b.stepIndex || (a.key < b.key ? -1 : 1));
  const bundle = buildBundle({ run, trigger, steps, commits, receipts });
  const written = await sealer.store.putOnce(bundle.documentKey, bundle.document, 'application/json');
  // What was written first is the evidence; what is signed and recorded is always the document that is there.
  const document = written ? bundle.document : await sealer.store.get(bundle.documentKey);
  const sha256 = sha256Hex(document);
  const envelope = await signBundle(run, sha256, sealer.signer);
  await sealer.store.putOnce(bundle.envelopeKey, envelope, 'application/json');
  await sealer.runs.fulfilSeal(entryId, tenant, runId, {
    documentKey: bundle.documentKey,
    envelopeKey: bundle.envelopeKey,
    sha256,
    sizeBytes: document.length,
    sealedAt: isoNow(sealer.clock),
  });
}
