import * as z from 'zod';
import type { Commit } from '../../run/commit.ts';
import { Sha256 } from '../../run/digest.ts';
import { withoutText } from '../../run/free-text.ts';
import { Time } from './entry-parts.ts';

/** An event of a kind that a later version of the runtime knows is still an event. */
const EvidenceEvent = z.looseObject({ type: z.string() });
export type EvidenceEvent = z.infer<typeof EvidenceEvent>;

export const EvidenceCommit = z.strictObject({
  seq: z.int().positive(),
  prevHash: Sha256,
  at: Time,
  events: z.array(EvidenceEvent),
  hash: Sha256,
});
export type EvidenceCommit = z.infer<typeof EvidenceCommit>;

/** A commit's hash is over its events without their texts, so the chain holds for what is shown here too. */
export function describeCommit({ seq, prevHash, at, events, hash }: Commit): EvidenceCommit {
  return { seq, prevHash, at, events: withoutText(events) as EvidenceEvent[], hash };
}
