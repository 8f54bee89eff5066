import { isoNow } from '../../entry/ports.ts';
import { newOutboxEntry } from '../../outbox/outbox.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import { type Commit, commitHash } from '../../run/commit.ts';
import { CountersignError } from '../../run/errors.ts';
import { isTerminal, type TerminalRun } from '../../run/run.ts';
import type { EvidenceRecord, RunStore } from '../../run/run-store.ts';
import { type Sealer, sealRun } from '../bundle/seal-run.ts';
import { siemAddendumKey, siemLines } from '../export/siem.ts';
import { signOnce } from '../signing/dsse.ts';
import { checkAddendumEnvelope } from '../verify/verify-addenda.ts';
import { addendumClaim, addendumDocument, addendumEnvelopeKey, addendumKey, addendumOf } from './addendum.ts';

export type AddendumSealer = Sealer & { runs: Pick<RunStore, 'load' | 'evidence' | 'listCommits'> };

interface Sealed {
  entryId: string;
  tenant: string;
  runId: string;
  /** The number of the commit. */
  seq: number;
}

/** Seals one commit of an ended run as an addendum to its bundle. Sealing again gives the same result. */
export async function sealAddendum(sealer: AddendumSealer, sealed: Sealed): Promise<TerminalRun | undefined> {
  const { entryId, tenant, runId, seq } = sealed;
  const loaded = await sealer.runs.load(tenant, runId);
  if (!loaded || !isTerminal(loaded.run)) {
    sealer.log.warn('asked to seal an addendum to a run that has not ended', { tenant, runId });
    return undefined;
  }
  const { sha256: bundle } = await sealedBundle(sealer, tenant, runId);
  const commit = await readCommit(sealer, sealed);
  const addendum = addendumOf({ tenant, runId, bundle }, commit);
  const document = addendumDocument(addendum);
  const key = addendumKey(addendum);
  if (
    !(await sealer.store.putOnce(key, document, 'application/json')) &&
    !(await sealer.store.get(key)).equals(document)
  ) {
    throw new CountersignError('CHAIN_BROKEN', `${key} is not that addendum. Find out who wrote it`);
  }
  const sha256 = sha256Hex(document);
  const envelopeKey = addendumEnvelopeKey(addendum);
  await signOnce(sealer, {
    key: envelopeKey,
    claim: addendumClaim(addendum, sha256),
    problem: (envelope, keys) => checkAddendumEnvelope(addendum, { document, envelope }, keys),
  });
  if (sealer.exports.wanted.includes('siem')) {
    const lines = siemLines(loaded.run, [commit]);
    await sealer.exports.store.putOnce(siemAddendumKey(loaded.run, commit), lines, 'application/x-ndjson');
  }
  const sealedAt = isoNow(sealer.clock);
  const record = { documentKey: key, envelopeKey, sha256, sizeBytes: document.length, sealedAt };
  const logged = { runId, addendum: seq, sha256, head: commit.hash, count: seq, sealedAt };
  await sealer.runs.completeSeal(entryId, tenant, runId, record, { logged, outboxEntries: [] });
  return loaded.run;
}

/** An addendum names the bundle, so the bundle is sealed first if it is not sealed yet. */
async function sealedBundle(sealer: AddendumSealer, tenant: string, runId: string): Promise<EvidenceRecord> {
  const before = await sealer.runs.evidence(tenant, runId);
  if (before) return before;
  const { id } = newOutboxEntry({ kind: 'seal_evidence', tenant, runId }, isoNow(sealer.clock));
  await sealRun(sealer, { entryId: id, tenant, runId });
  const now = await sealer.runs.evidence(tenant, runId);
  if (!now) throw new Error(`the bundle of ${runId} is not sealed`);
  return now;
}

/** Throws unless the commit is intact and follows the one before it. */
async function readCommit({ runs }: AddendumSealer, { tenant, runId, seq }: Sealed): Promise<Commit> {
  const [previous, commit] = await runs.listCommits(tenant, runId, { after: seq - 2, limit: 2 });
  const follows = previous?.seq === seq - 1 && commit?.seq === seq && commit.prevHash === previous.hash;
  if (commit && follows && commitHash(commit) === commit.hash) return commit;
  throw new CountersignError(
    'CHAIN_BROKEN',
    `commit ${seq} of run ${runId} is missing, was edited or does not follow the one before it. Find out who changed it`,
  );
}
