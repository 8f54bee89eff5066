import * as z from 'zod';
import { hashOf, sha256Hex } from '../../run/canonical-json.ts';
import type { Claim, Statement } from '../signing/dsse.ts';
import type { EvidenceDocument } from './document.ts';

const PREDICATE_TYPE = 'https://countersign.dev/evidence/v1';

const Predicate = z.strictObject({
  /** Hash and number of the last commit. */
  head: z.string(),
  count: z.int(),
  status: z.string(),
  /** The hash of the index of entries. */
  index: z.string(),
  /** The rules that the run broke, if an owner accepted that. */
  rulesBroken: z.array(z.int()).optional(),
  keyId: z.string(),
});

export interface BundleClaim extends Claim {
  predicate: Omit<z.infer<typeof Predicate>, 'keyId'>;
}

/** The signed facts of a document: its hash, the head of its chain, and the hash of its index. */
export function bundleClaim(document: Buffer, read: EvidenceDocument = JSON.parse(document.toString())): BundleClaim {
  const { run, head, index } = read;
  return {
    subject: `${run.tenant}/${run.runId}`,
    sha256: sha256Hex(document),
    predicateType: PREDICATE_TYPE,
    predicate: { head: head.hash, count: head.count, status: run.status, index: hashOf(index) },
  };
}

export const withBrokenRules = (claim: BundleClaim, rulesBroken: readonly number[]): BundleClaim =>
  rulesBroken.length === 0 ? claim : { ...claim, predicate: { ...claim.predicate, rulesBroken: [...rulesBroken] } };

/** The same facts, read from an envelope. */
export type Signed = z.infer<typeof Predicate> & {
  /** `<tenant>/<run id>`. */
  subject: string;
  /** Of the document. */
  sha256: string;
};

/** Reads the signed facts from a statement; undefined if it is not about a bundle. */
export function signedIn({ predicateType, predicate, subject: [subject] }: Statement): Signed | undefined {
  const { data } = Predicate.safeParse(predicate);
  if (!data || predicateType !== PREDICATE_TYPE) return undefined;
  return { ...data, subject: subject.name, sha256: subject.digest.sha256 };
}
