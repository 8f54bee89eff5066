import { tryParseJsonBytes } from '../../entry/parse-json.ts';
import { canonicalJson, hashOf, sha256Hex } from '../../run/canonical-json.ts';
import { dayOf } from '../../run/log-entry.ts';
import { Addendum, addendumClaim, addendumDocument } from '../addendum/addendum.ts';
import { beyondLimits } from './limits.ts';
import { claimOf, openEnvelope } from './open-envelope.ts';
import type { Problem } from './problem.ts';
import { checkKey, signingKey, type TrustedKey } from './trusted-keys.ts';

export interface HeldAddendum {
  /** The file, for people to find it. */
  name: string;
  document: Buffer;
  envelope: Buffer | undefined;
  /** Why a file was not read at all: it is far too large. */
  refused?: string;
}

/** The bundle that the addenda continue. */
interface Continued {
  tenant: string;
  runId: string;
  sha256: string;
  head: string;
  commits: number;
}

export type AddendaVerdict = { addenda: Addendum[] } | Problem;

/**
 * Checks the addenda of a valid bundle, in any order: each is signed and unedited, names this bundle, and its commit
 * follows the one before it. A missing one is noticed if a later one is there; the log of the day lists all of them.
 */
export function verifyAddenda(
  bundle: Continued,
  held: readonly HeldAddendum[],
  keys: readonly TrustedKey[],
): AddendaVerdict {
  const addenda: Addendum[] = [];
  for (const each of held) {
    const read = readAddendum(bundle, each, keys);
    if ('problem' in read) return read;
    addenda.push(read);
  }
  addenda.sort((a, b) => a.commit.seq - b.commit.seq);
  let [head, count] = [bundle.head, bundle.commits];
  for (const { commit } of addenda) {
    const entry = `addendum ${commit.seq}`;
    if (commit.seq <= count) return { entry, problem: 'is duplicated, or its commit is in the bundle' };
    if (commit.seq > count + 1) return { entry: `addendum ${count + 1}`, problem: 'is missing' };
    if (commit.prevHash !== head) return { entry, problem: `does not follow commit ${count}` };
    [head, count] = [commit.hash, commit.seq];
  }
  return { addenda };
}

function readAddendum(bundle: Continued, held: HeldAddendum, keys: readonly TrustedKey[]): Addendum | Problem {
  const { name, document, envelope } = held;
  const refused =
    held.refused ?? beyondLimits('addendum', document) ?? (envelope && beyondLimits('envelope', envelope));
  if (refused !== undefined) return { entry: name, problem: `is not an addendum: ${refused}` };
  const { data: addendum } = Addendum.safeParse(tryParseJsonBytes(document));
  if (!addendum) return { entry: name, problem: 'is not an addendum: it was truncated or edited' };
  const { tenant, runId, commit } = addendum;
  const entry = `addendum ${commit.seq}`;
  const { hash, ...content } = commit;
  if (hashOf(content) !== hash) return { entry, problem: 'was edited: its commit has another hash' };
  if (!addendumDocument(addendum).equals(document)) {
    return { entry, problem: 'is not in canonical form (RFC 8785): it was rewritten or edited' };
  }
  const problem = checkAddendumEnvelope(addendum, { document, envelope }, keys);
  if (problem !== undefined) return { entry, problem };
  if (tenant !== bundle.tenant || runId !== bundle.runId) return { entry, problem: `is of ${tenant}/${runId}` };
  // The run has ended: nothing that is recorded later may begin a call.
  if (commit.events.some(({ type }) => type === 'write.intended' || type === 'step.claimed'))
    return { entry, problem: 'begins a call after the end of the run' };
  if (addendum.bundle !== bundle.sha256) return { entry, problem: 'names another bundle of this run' };
  return addendum;
}

/** Checks the envelope of an addendum that is otherwise valid. Without keys, only what it says. */
export function checkAddendumEnvelope(
  addendum: Addendum,
  { document, envelope }: Pick<HeldAddendum, 'document' | 'envelope'>,
  keys: readonly TrustedKey[],
): string | undefined {
  if (!envelope) return 'is not signed: the envelope beside it is missing';
  try {
    const opened = openEnvelope(envelope);
    const signer = signingKey(opened, keys);
    if (!signer && keys.length > 0) return `was not signed by a trusted key; it names ${opened.keyId}`;
    const problem = signer && checkKey(signer, opened.keyId, dayOf(addendum.commit.at));
    if (problem !== undefined) return `has a signature that ${problem}`;
    const due = canonicalJson(addendumClaim(addendum, sha256Hex(document)));
    return canonicalJson(claimOf(opened)) === due ? undefined : 'differs from the signed addendum';
  } catch (error) {
    return `has an envelope that cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  }
}
