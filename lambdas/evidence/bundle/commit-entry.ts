import * as z from 'zod';
import type { Commit } from '../../run/commit.ts';
import { Sha256 } from '../../run/digest.ts';
import { digestSentences } from '../../run/events/digest-sentences.ts';
import type { RecordedEvent } from '../../run/events/replay-state.ts';
import { Time } from './entry-parts.ts';

/** Not checked against the kinds of events, because an older or newer version may have sealed the bundle. */
const EvidenceEvent = z.looseObject({ type: z.string() });

export const EvidenceCommit = z.strictObject({
  seq: z.int().positive(),
  prevHash: Sha256,
  at: Time,
  events: z.array(EvidenceEvent),
  hash: Sha256,
});
export type EvidenceCommit = z.infer<typeof EvidenceCommit>;

/** The hash of a commit is over its events with digests for sentences, so it also fits what is shown here. */
export function describeCommit({ seq, prevHash, at, events, hash }: Commit): EvidenceCommit {
  return { seq, prevHash, at, events: digestSentences(events) as RecordedEvent[], hash };
}
