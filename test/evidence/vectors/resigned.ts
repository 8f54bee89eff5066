import { bundleClaim } from '../../../lambdas/evidence/bundle/bundle-claim.ts';
import { type Claim, signClaim } from '../../../lambdas/evidence/signing/dsse.ts';
import { SIGNER } from '../bundle/sealed-bundle.ts';
import { canonical, type Json } from '../verify/second-verifier.ts';
import { type Operation, patched } from './patched.ts';

/** A wrong bundle with a signature of the right key. `step`: the step under "Verifying" that finds the problem. */
export interface Resigned {
  what: string;
  step: number;
  verdict: 'tampered' | 'unreadable';
  /** Which entry a verifier has to name. */
  entry?: string;
  /** Edits of the valid document, after which its index is computed again and it is written canonically. */
  patch: Operation[];
  keepsIndex?: true;
  /** And then to its text. */
  write?: [from: string, to: string];
  envelope: string;
}

type Draft = Partial<Resigned> & { claim?: (claim: Claim) => Claim };

const replace = (path: string, value: Json): Operation => ({ op: 'replace', path, value });
const remove = (path: string): Operation => ({ op: 'remove', path });

export async function resignedVectors(document: string): Promise<Resigned[]> {
  const read = JSON.parse(document);
  const one = async (step: number, what: string, entry: string | undefined, draft: Draft): Promise<Resigned> => {
    const { patch = [], keepsIndex, write, verdict = 'tampered', claim = (each: Claim) => each } = draft;
    const text = canonical(patched(document, patch, keepsIndex));
    const bytes = Buffer.from(write ? text.replace(...write) : text);
    const envelope = String(await signClaim(claim(bundleClaim(bytes)), SIGNER));
    return { what, step, verdict, entry, patch, keepsIndex, write, envelope };
  };
  const contradicting = (what: string, entry: string, ...patch: Operation[]) => one(8, what, entry, { patch });
  const [step, receipt, approval] = ['step 2 \\(assign\\)', 'receipt 2 \\(assign\\)', 'approval 1 \\(assign\\)'];
  return Promise.all([
    one(1, 'it is about something else', undefined, {
      verdict: 'unreadable',
      claim: (claim) => ({ ...claim, predicateType: 'https://example.com/other/v1' }),
    }),
    one(3, 'it is of another format', undefined, {
      verdict: 'unreadable',
      patch: [replace('/format', 'countersign.evidence/3')],
    }),
    one(4, 'the statement is about another run', 'run', {
      claim: (claim) => ({ ...claim, subject: 'acme/run_00000002' }),
    }),
    one(4, 'the statement has another status', 'run', {
      claim: (claim) => ({ ...claim, predicate: { ...claim.predicate, status: 'succeeded' } }),
    }),
    one(5, 'the head has another count', 'commit 10', { patch: [replace('/head/count', 9)] }),
    one(6, 'the statement has another index', 'index', {
      claim: (claim) => ({ ...claim, predicate: { ...claim.predicate, index: '0'.repeat(64) } }),
    }),
    one(6, 'an entry is not the one in the index', receipt, {
      patch: [replace('/receipts/1/response', { status: 201 })],
      keepsIndex: true,
    }),
    one(7, 'an entry has one field more', 'run', { patch: [{ op: 'add', path: '/run/note', value: 'x' }] }),
    one(7, 'an entry has one field less', receipt, { patch: [remove('/receipts/1/effect')] }),
    one(7, 'a time has no milliseconds', 'run', { patch: [replace('/run/deadlineAt', '2026-01-02T05:04:05Z')] }),
    contradicting('the run was accepted at another time', 'run', replace('/run/createdAt', '2026-01-01T00:00:00.000Z')),
    contradicting('the run took another time', 'run', replace('/run/durationMs', 1)),
    contradicting('the run was not rolled back', 'run', remove('/run/rollback')),
    contradicting('nothing was compensated', 'run', remove('/run/compensation')),
    contradicting('the trigger has another source', 'trigger', replace('/trigger/source', 'servicenow')),
    contradicting('a step has another tool', step, replace('/steps/1/tool', 'http.get')),
    contradicting('a step was not rolled back', step, replace('/steps/1/status', 'succeeded')),
    contradicting('a step has no approval', step, remove('/steps/1/approvalId')),
    contradicting(
      'steps are out of order',
      'step 2',
      replace('/steps/0', read.steps[1]),
      replace('/steps/1', read.steps[0]),
    ),
    contradicting('a receipt names another approval', receipt, replace('/receipts/1/grounds/approvalId', 'made-up')),
    contradicting('a receipt names other policies', receipt, replace('/receipts/1/grounds/policyHash', '0'.repeat(64))),
    contradicting('a receipt was recovered', receipt, { op: 'add', path: '/receipts/1/recovered', value: true }),
    contradicting('a receipt was reversed by another', receipt, replace('/receipts/1/reversedBy', 'made-up')),
    contradicting('a receipt is there twice', 'receipt 5', { op: 'add', path: '/receipts/-', value: read.receipts[3] }),
    contradicting('a receipt is missing', 'receipt of undo_assign', remove('/receipts/3')),
    contradicting('fewer people were asked for', approval, replace('/approvals/0/requirement/quorum', 1)),
    contradicting('nobody was a maker', approval, replace('/approvals/0/makers', [])),
    contradicting('nothing was edited', approval, replace('/approvals/0/edits', [])),
    contradicting('somebody voted in the place of another', approval, {
      ...{ op: 'add', path: '/approvals/0/votes/0/onBehalfOf', value: 'mallory' },
    }),
    contradicting(
      'somebody voted at another time',
      approval,
      replace('/approvals/0/votes/0/at', '2026-01-02T03:04:05.000Z'),
    ),
    contradicting('policy said something else', 'decision 2', replace('/decisions/1/verdict', 'allow')),
    contradicting('it cost nothing', 'cost', replace('/cost', [])),
    one(9, 'it is not written canonically', 'document', { write: ['{', '{ '] }),
  ]);
}
