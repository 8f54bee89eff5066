import { type Clock, isoNow } from '../../entry/ports.ts';
import type { OutboxEntry } from '../../outbox/outbox.ts';
import { CountersignError } from '../../run/errors.ts';
import type { TerminalRun } from '../../run/run.ts';
import type { ArtifactReference, EvidenceRecord, RunStore } from '../../run/run-store.ts';
import type { EvidenceStore, Signer } from '../evidence-store.ts';
import { type Exports, exportTogether } from '../export/export-run.ts';
import { signClaims } from '../signing/dsse.ts';
import { BundleObject, bundleObjectKey } from './bundle-object.ts';
import { type BundleReads, type DraftedBundle, draftBundle, type SealRequest } from './draft-bundle.ts';

export interface Sealer extends BundleReads {
  runs: BundleReads['runs'] & Pick<RunStore, 'completeSeal'>;
  store: EvidenceStore;
  exports: Exports;
  signer: Signer;
  clock: Clock;
}

/**
 * What drafted runs may occupy before they are sealed. The largest run needs 400 MB of the function's 512 for itself, so it
 * follows at most this much of other runs, and is sealed at once.
 */
const DRAFTED_MAX_BYTES = 16 * 1024 * 1024;

type Sealed = PromiseSettledResult<TerminalRun | undefined>;

/**
 * Seals finished runs together: one signature for all of them, and one object for those of a tenant. Each run succeeds or
 * fails on its own, and sealing again changes nothing.
 *
 *   read a run, verify its document, next run ──► sign ──► store bundles ──► store exports ──► record each run
 *
 * After a crash, the runs that are not recorded are sealed again, in another batch. What was stored before is not
 * recorded anywhere, and remains: a bundle of the same run with the same commits.
 */
export async function sealRuns(sealer: Sealer, requests: readonly SealRequest[]): Promise<Sealed[]> {
  const results = new Map<string, Sealed>();
  let drafts: DraftedBundle[] = [];
  const sealDrafts = async () => {
    const sealed = await sealTogether(sealer, drafts);
    for (const { request } of drafts) results.set(request.entryId, sealed.get(request) as Sealed);
    drafts = [];
  };
  // Messages may be repeated within a batch.
  for (const request of new Map(requests.map((each) => [each.entryId, each])).values()) {
    const [drafted] = await Promise.allSettled([draftBundle(sealer, request)]);
    if (drafted.status === 'rejected') results.set(request.entryId, drafted);
    else if (drafted.value && 'claim' in drafted.value) drafts.push(drafted.value);
    else results.set(request.entryId, { status: 'fulfilled', value: drafted.value?.sealed });
    const bytes = drafts.reduce((sum, { document, exported }) => sum + document.length + exported.bytes, 0);
    if (bytes > DRAFTED_MAX_BYTES) await sealDrafts();
  }
  if (drafts.length > 0) await sealDrafts();
  return requests.map(({ entryId }) => results.get(entryId) as Sealed);
}

/** Returns undefined if there is no such run. */
export async function sealRun(sealer: Sealer, request: SealRequest): Promise<TerminalRun | undefined> {
  const [sealed] = await sealRuns(sealer, [request]);
  if (sealed?.status === 'rejected') throw sealed.reason;
  return sealed?.value;
}

async function sealTogether(
  sealer: Sealer,
  drafts: readonly DraftedBundle[],
): Promise<ReadonlyMap<SealRequest, Sealed>> {
  const claims = drafts.map(({ claim }) => claim);
  const [signed] = await Promise.allSettled([signClaims(claims, sealer.signer)]);
  if (signed.status === 'rejected') return new Map(drafts.map(({ request }) => [request, signed]));
  const envelopes = new Map(drafts.map((draft, index) => [draft, signed.value[index] as Buffer]));
  const results = new Map<SealRequest, Sealed>();
  for (const own of Map.groupBy(drafts, ({ run }) => run.tenant).values()) {
    const [sealed] = await Promise.allSettled([sealTenant(sealer, own, envelopes)]);
    for (const [index, { request }] of own.entries()) {
      results.set(request, sealed.status === 'fulfilled' ? (sealed.value[index] as Sealed) : sealed);
    }
  }
  return results;
}

/** Stores the bundles of a tenant in one object, then their exports, then records each run. */
async function sealTenant(
  sealer: Sealer,
  drafts: readonly DraftedBundle[],
  envelopes: ReadonlyMap<DraftedBundle, Buffer>,
): Promise<Sealed[]> {
  const object = new BundleObject();
  const places = drafts.map((draft) => object.add(draft.document, envelopes.get(draft) as Buffer));
  const sealedAt = isoNow(sealer.clock);
  const key = await storeBundles(sealer, drafts, sealedAt, object.content());
  const exports = await exportTogether(sealer, drafts);
  return Promise.allSettled(
    drafts.map((draft, index) => {
      const place = { documentKey: key, envelopeKey: key, within: places[index] as Within, sealedAt };
      return record(sealer, draft, place, exports[index] as Exported);
    }),
  );
}

type Within = NonNullable<EvidenceRecord['within']>;

interface Exported {
  artifacts: ArtifactReference[];
  outboxEntries: OutboxEntry[];
}

async function record(
  { runs }: Sealer,
  { request, run, document, claim: { sha256 }, head, trace }: DraftedBundle,
  place: Pick<EvidenceRecord, 'documentKey' | 'envelopeKey' | 'within' | 'sealedAt'>,
  { artifacts, outboxEntries }: Exported,
): Promise<TerminalRun> {
  const { tenant, runId } = run;
  const evidence = { ...place, sha256, sizeBytes: document.length, ...(artifacts.length > 0 && { artifacts }) };
  const logged = { runId, sha256, head: head.hash, count: head.count, sealedAt: place.sealedAt };
  const entryId = request.again ? request.entryId : undefined;
  await runs.completeSeal(entryId, tenant, runId, evidence, { logged, outboxEntries });
  if (run.sealDueAt !== undefined) await runs.clearSealDue(run);
  // Last: a collector that fails or is slow cannot affect evidence.
  await trace?.export(run);
  return run;
}

async function storeBundles(
  { store }: Sealer,
  [first]: readonly DraftedBundle[],
  sealedAt: string,
  content: Buffer,
): Promise<string> {
  const key = bundleObjectKey(first?.run.tenant ?? '', sealedAt, content);
  if (await store.putOnce(key, content, 'application/x-ndjson')) return key;
  // An earlier attempt stored the same bytes, or somebody else stored others.
  if ((await store.get(key)).equals(content)) return key;
  throw new CountersignError('CHAIN_BROKEN', `${key} is not what was sealed. Find out who wrote it`);
}
