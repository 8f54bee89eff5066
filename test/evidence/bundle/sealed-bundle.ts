import { bundleClaim } from '../../../lambdas/evidence/bundle/bundle-claim.ts';
import type { EvidenceDocument } from '../../../lambdas/evidence/bundle/document.ts';
import { signClaim, signClaims } from '../../../lambdas/evidence/signing/dsse.ts';
import { trustedKey } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import type { HeldBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import { SeededSigner } from '../../fakes/seeded-signer.ts';
import { builtDocument } from './built-bundle.ts';
import { GovernedStory, type StoryOptions } from './governed-story.ts';

export const SIGNER = new SeededSigner();
export const TRUSTED = [trustedKey(SIGNER.publicKey)];

/** A bundle as an auditor holds it: sealed, signed, with the right key. */
export async function sealedBundle(options: StoryOptions = {}, signer = SIGNER): Promise<HeldBundle> {
  const document = builtDocument(new GovernedStory(options).contents);
  return { document, envelope: await signClaim(bundleClaim(document), signer), keys: TRUSTED };
}

/** The same bundle, signed together with others. `at` is its place among them. */
export async function inBatch(
  bundle: HeldBundle,
  others: readonly HeldBundle[],
  { at = 1, signer = SIGNER } = {},
): Promise<HeldBundle> {
  const claims = others.map(({ document }) => bundleClaim(document)).toSpliced(at, 0, bundleClaim(bundle.document));
  const envelope = (await signClaims(claims, signer))[at];
  if (!envelope) throw new Error(`there is no envelope ${at}`);
  return { ...bundle, envelope };
}

export const parsedDocument = ({ document }: HeldBundle): EvidenceDocument => JSON.parse(document.toString());
