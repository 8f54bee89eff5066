import { hashOf } from '../../run/canonical-json.ts';
import { genesisHash } from '../../run/commit.ts';
import type { Signed } from '../bundle/bundle-claim.ts';
import type { EvidenceCommit } from '../bundle/commit-entry.ts';
import type { DocumentOutline } from '../bundle/document.ts';
import type { Problem } from './problem.ts';

type SignedHead = Pick<Signed, 'head' | 'count'>;

/** Returns the first commit that was edited, removed, added, moved, or is of another run. */
export function checkChain({ run, commits, head }: DocumentOutline, signed: SignedHead): Problem | undefined {
  let prevHash = genesisHash(run.tenant, run.runId);
  for (const [index, commit] of commits.entries()) {
    const problem = misplaced(commits, index) ?? unlinked(commits, index, prevHash, signed);
    if (problem) return problem;
    prevHash = commit.hash;
  }
  const last = commits.length;
  if (last < signed.count) return missing(last + 1, signed.count);
  if (last > signed.count) return { entry: `commit ${signed.count + 1}`, problem: 'was added after the signed head' };
  if (prevHash !== signed.head)
    return { entry: `commit ${last}`, problem: 'was replaced: another commit was signed as the head' };
  if (head.hash !== signed.head || head.count !== signed.count) {
    return { entry: 'head', problem: 'was edited: it is not the end of the signed chain' };
  }
  return undefined;
}

function misplaced(commits: readonly EvidenceCommit[], index: number): Problem | undefined {
  const expected = index + 1;
  const seq = commits[index]?.seq ?? 0;
  if (seq === expected) return undefined;
  if (seq < expected) {
    const same = commits[seq - 1]?.hash === commits[index]?.hash;
    return { entry: `commit ${seq}`, problem: same ? 'is duplicated' : `is in the position of commit ${expected}` };
  }
  const elsewhere = commits.some((commit) => commit.seq === expected);
  return elsewhere
    ? { entry: `commit ${seq}`, problem: `is in the position of commit ${expected}` }
    : missing(expected);
}

function unlinked(
  commits: readonly EvidenceCommit[],
  index: number,
  prevHash: string,
  { head }: SignedHead,
): Problem | undefined {
  const commit = commits[index];
  if (!commit) return undefined;
  const { seq } = commit;
  if (!isIntact(commit)) return { entry: `commit ${seq}`, problem: 'was edited: its hash does not match its content' };
  if (commit.prevHash === prevHash) return undefined;
  if (index === 0) {
    return { entry: 'commit 1', problem: 'is not of this run: the chain is of another run' };
  }
  // The rest of the chain is as signed, so the previous commit was forged.
  if (leadsToHead(commits.slice(index), head)) {
    return { entry: `commit ${seq - 1}`, problem: `was replaced: commit ${seq} follows another commit` };
  }
  return {
    entry: `commit ${seq}`,
    problem: `does not follow commit ${seq - 1}: it was replaced or is of another run`,
  };
}

/** `hash = sha256(JCS({seq, prevHash, at, events}))`, over the events as shown. */
const isIntact = ({ hash, seq, prevHash, at, events }: EvidenceCommit) =>
  hashOf({ seq, prevHash, at, events }) === hash;

function leadsToHead(commits: readonly EvidenceCommit[], head: string): boolean {
  const linked = commits.every(
    (commit, index) => isIntact(commit) && (index === 0 || commit.prevHash === commits[index - 1]?.hash),
  );
  return linked && commits.at(-1)?.hash === head;
}

function missing(from: number, to = from): Problem {
  return from === to
    ? { entry: `commit ${from}`, problem: 'is missing' }
    : { entry: `commit ${from}`, problem: `is missing, with all up to commit ${to}` };
}
