import { genesisHash } from '../../run/commit.ts';
import type { Signed } from '../bundle/bundle-claim.ts';
import type { EvidenceCommit } from '../bundle/commit-entry.ts';
import type { DocumentOutline } from '../bundle/document.ts';
import type { DocumentTexts } from '../bundle/document-texts.ts';
import type { Problem } from './problem.ts';

type SignedHead = Pick<Signed, 'head' | 'count'>;

/** Returns the first commit that was edited, removed, added, moved, or is of another run. */
export function checkChain(
  { run, commits, head }: DocumentOutline,
  texts: DocumentTexts,
  signed: SignedHead,
): Problem | undefined {
  let prevHash = genesisHash(run.tenant, run.runId);
  const chain = { commits, texts };
  for (const [index, commit] of commits.entries()) {
    const problem = misplaced(commits, index) ?? unlinked(chain, index, prevHash, signed);
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

interface Chain {
  commits: readonly EvidenceCommit[];
  texts: DocumentTexts;
}

function unlinked(chain: Chain, index: number, prevHash: string, { head }: SignedHead): Problem | undefined {
  const commit = chain.commits[index];
  if (!commit) return undefined;
  const { seq } = commit;
  if (!isIntact(chain, index))
    return { entry: `commit ${seq}`, problem: 'was edited: its hash does not match its content' };
  if (commit.prevHash === prevHash) return undefined;
  if (index === 0) {
    return { entry: 'commit 1', problem: 'is not of this run: the chain is of another run' };
  }
  // The rest of the chain is as signed, so the previous commit was forged.
  if (leadsToHead(chain, index, head)) {
    return { entry: `commit ${seq - 1}`, problem: `was replaced: commit ${seq} follows another commit` };
  }
  return {
    entry: `commit ${seq}`,
    problem: `does not follow commit ${seq - 1}: it was replaced or is of another run`,
  };
}

const isIntact = ({ commits, texts }: Chain, index: number) => texts.hashOfCommit(index) === commits[index]?.hash;

function leadsToHead(chain: Chain, from: number, head: string): boolean {
  const { commits } = chain;
  const linked = commits.every(
    (commit, index) =>
      index < from || (isIntact(chain, index) && (index === from || commit.prevHash === commits[index - 1]?.hash)),
  );
  return linked && commits.at(-1)?.hash === head;
}

function missing(from: number, to = from): Problem {
  return from === to
    ? { entry: `commit ${from}`, problem: 'is missing' }
    : { entry: `commit ${from}`, problem: `is missing, with all up to commit ${to}` };
}
