import { CountersignError } from '../../run/errors.ts';
import type { EvidenceStore, Signer } from '../evidence-store.ts';
import type { TrustedKey } from '../verify/trusted-keys.ts';
import { type Claim, signClaim } from './dsse.ts';

interface Signing {
  key: string;
  claim: Claim;
  /** What an auditor with these keys would hold against an envelope, with the document that it is for. */
  problem(envelope: Buffer, keys: readonly TrustedKey[]): string | undefined;
}

/** Signs a claim and keeps the envelope beside its document. One that is there already must be as good as ours. */
export async function signOnce(
  { store, signer }: { store: EvidenceStore; signer: Signer },
  { key, claim, problem }: Signing,
): Promise<void> {
  if (await store.putOnce(key, await signClaim(claim, signer), 'application/json')) return;
  const found = problem(await store.get(key), await signer.trusted());
  if (found === undefined) return;
  throw new CountersignError('CHAIN_BROKEN', `${key} is no signature of ours (${found}); find out who wrote it`);
}
