import { bundleClaim } from '../../../lambdas/evidence/bundle/bundle-claim.ts';
import type { EvidenceCommit } from '../../../lambdas/evidence/bundle/commit-entry.ts';
import type { EvidenceDocument } from '../../../lambdas/evidence/bundle/document.ts';
import { DocumentTexts, indexOf } from '../../../lambdas/evidence/bundle/document-texts.ts';
import { signClaim } from '../../../lambdas/evidence/signing/dsse.ts';
import { type HeldBundle, verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import { canonicalJson, hashOf } from '../../../lambdas/run/canonical-json.ts';
import { parsedDocument, SIGNER, sealedBundle, TRUSTED } from '../bundle/sealed-bundle.ts';

export const bundle = await sealedBundle();
export const other = parsedDocument(await sealedBundle({ runId: 'run_00000002' }));

type Change = (document: EvidenceDocument) => unknown;

/** A change of a document, and the problem that the verifier must report. */
export type Case = [what: string, change: Change, expected: { entry: string; problem: RegExp }];

/** The bundle with a changed document in canonical form, as an attacker who knows the format would write it. */
export function changed(change: Change): HeldBundle {
  const document = parsedDocument(bundle);
  change(document);
  return { ...bundle, document: Buffer.from(canonicalJson(document)) };
}

/** Sealed with the signing key: only its contradicting content shows the change. */
export async function resealed(change: Change): Promise<HeldBundle> {
  const { document } = changed((each) => {
    change(each);
    each.index = indexOf(new DocumentTexts(each));
  });
  return { document, envelope: await signClaim(bundleClaim(document), SIGNER), keys: TRUSTED };
}

export const problemOf = (held: HeldBundle) => {
  const verdict = verifyBundle(held);
  return verdict.verdict === 'tampered' ? { entry: verdict.entry, problem: verdict.problem } : verdict;
};

export function rehash(commit: EvidenceCommit | undefined, change: Partial<EvidenceCommit>): void {
  if (!commit) throw new Error('there is no such commit');
  Object.assign(commit, change);
  const { seq, prevHash, at, events } = commit;
  commit.hash = hashOf({ seq, prevHash, at, events });
}

export const swap = <T>(list: T[], a: number, b: number) => {
  [list[a], list[b]] = [list[b] as T, list[a] as T];
};
