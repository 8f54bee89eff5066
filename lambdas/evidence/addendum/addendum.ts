import * as z from 'zod';
import { canonicalJson } from '../../run/canonical-json.ts';
import type { Commit } from '../../run/commit.ts';
import { Sha256 } from '../../run/digest.ts';
import { describeCommit, EvidenceCommit } from '../bundle/commit-entry.ts';
import type { Claim } from '../signing/dsse.ts';

/**
 * An addendum to the evidence of a run, as docs/evidence-format.md defines it: one commit that was made after the end of
 * the run. Its `prevHash` continues the chain of the bundle.
 */
const ADDENDUM_FORMAT = 'countersign.evidence-addendum/1';
const PREDICATE_TYPE = 'https://countersign.dev/evidence-addendum/v1';

export const Addendum = z.strictObject({
  format: z.literal(ADDENDUM_FORMAT),
  tenant: z.string(),
  runId: z.string(),
  /** The sha256 of the document of the bundle. */
  bundle: Sha256,
  commit: EvidenceCommit,
});
export type Addendum = z.infer<typeof Addendum>;

export function addendumOf(facts: Pick<Addendum, 'tenant' | 'runId' | 'bundle'>, commit: Commit): Addendum {
  return { format: ADDENDUM_FORMAT, ...facts, commit: describeCommit(commit) };
}

export const addendumDocument = (addendum: Addendum): Buffer => Buffer.from(canonicalJson(addendum));

const SEQ_DIGITS = 8;
const fileName = (seq: number) => `addendum-${String(seq).padStart(SEQ_DIGITS, '0')}`;
const folderOf = ({ tenant, runId }: Addendum) => `evidence/${tenant}/${runId}`;

export const addendumKey = (addendum: Addendum) => `${folderOf(addendum)}/${fileName(addendum.commit.seq)}.json`;
export const addendumEnvelopeKey = (addendum: Addendum) =>
  `${folderOf(addendum)}/${fileName(addendum.commit.seq)}.dsse.json`;

/** The signed facts: the bundle that it continues, and its commit. */
export function addendumClaim({ tenant, runId, bundle, commit }: Addendum, sha256: string): Claim {
  return {
    subject: `${tenant}/${runId}/${commit.seq}`,
    sha256,
    predicateType: PREDICATE_TYPE,
    predicate: { bundle, head: commit.hash, count: commit.seq },
  };
}
