import { describe, expect, it } from 'vitest';
import type { EvidenceDocument } from '../../../lambdas/evidence/bundle/document.ts';
import { parsedDocument, SIGNER } from '../bundle/sealed-bundle.ts';
import rejection from '../vectors/rules/format-1/rule-12.json' with { type: 'json' };
import { resealedAs } from './resealed-mutations.ts';
import { isGenuine } from './second-verifier.ts';
import { bundle, type Case, problemOf, rehash, resealed, swap } from './tampering.ts';

const PUBLIC_KEY = String(SIGNER.publicKey.export({ type: 'spki', format: 'pem' }));

type Entry = object | undefined;
const edit = (entry: Entry, change: object) => Object.assign(entry ?? {}, change);

const EARLIER = '2025-12-31T00:00:00.000Z';
const OTHER_HASH = '0'.repeat(64);
const [RUN, TRIGGER, STEP, RECEIPT, APPROVAL] = [
  'run',
  'trigger',
  'step 2 (assign)',
  'receipt 2 (assign)',
  'approval 1 (assign)',
];

/** A field of an entry, and a value for it that contradicts the commits. */
type Retold = [entry: string, field: string, value: unknown, of: (document: EvidenceDocument) => Entry];

const runOf = ({ run }: EvidenceDocument) => run;
const triggerOf = ({ trigger }: EvidenceDocument) => trigger;
const stepOf = ({ steps }: EvidenceDocument) => steps[1];
const receiptOf = ({ receipts }: EvidenceDocument) => receipts[1];
const approvalOf = ({ approvals }: EvidenceDocument) => approvals[0];

const CONTRADICTIONS: Retold[] = [
  [RUN, 'automation', 'x', runOf],
  [RUN, 'workflow.version', 4, runOf],
  [RUN, 'trigger.source', 'servicenow', runOf],
  [RUN, 'trigger.key', 'x', runOf],
  [RUN, 'createdAt', EARLIER, runOf],
  [RUN, 'startedAt', EARLIER, runOf],
  [RUN, 'startedAt', undefined, runOf],
  [RUN, 'completedAt', EARLIER, runOf],
  [RUN, 'durationMs', 0, runOf],
  [RUN, 'status', 'succeeded', runOf],
  [RUN, 'error.code', 'OUTCOME_UNKNOWN', runOf],
  [RUN, 'rollback', undefined, runOf],
  [RUN, 'rollback.actor', 'mallory', runOf],
  [RUN, 'rollback.endsAs', 'canceled', runOf],
  [RUN, 'compensation', undefined, runOf],
  [RUN, 'compensation', [], runOf],
  [RUN, 'outcome', 'kept', ({ run }) => run.compensation?.[0]],
  [TRIGGER, 'source', 'servicenow', triggerOf],
  [TRIGGER, 'receivedAt', EARLIER, triggerOf],
  [TRIGGER, 'payload.sha256', OTHER_HASH, triggerOf],
  ['step 2 (other)', 'id', 'other', stepOf],
  [STEP, 'tool', 'http.get', stepOf],
  [STEP, 'status', 'succeeded', stepOf],
  [STEP, 'skipped', true, stepOf],
  [STEP, 'attempt', 9, stepOf],
  [STEP, 'leaseVersion', 9, stepOf],
  [STEP, 'updatedAt', EARLIER, stepOf],
  [STEP, 'completedAt', EARLIER, stepOf],
  [STEP, 'undoes', 0, stepOf],
  [STEP, 'action', undefined, stepOf],
  [STEP, 'action.target', 'servicenow:acme:incident:other', stepOf],
  [STEP, 'approvalId', undefined, stepOf],
  [STEP, 'approvalId', 'made-up', stepOf],
  [STEP, 'receiptKey', 'made-up', stepOf],
  [STEP, 'output.sha256', OTHER_HASH, stepOf],
  ['step 3 (post)', 'status', 'succeeded', ({ steps }) => steps[2]],
  ['step 3 (post)', 'input.sha256', OTHER_HASH, ({ steps }) => steps[2]],
  ['step 3 (post)', 'error.code', 'OUTCOME_UNKNOWN', ({ steps }) => steps[2]],
  ['step 3 (post)', 'receiptKey', undefined, ({ steps }) => steps[2]],
  ['step 4 (undo_assign)', 'undoes', undefined, ({ steps }) => steps[3]],
  ['receipt 2 (post)', 'step', 'post', receiptOf],
  [RECEIPT, 'index', 9, receiptOf],
  [RECEIPT, 'tool', 'http.get', receiptOf],
  [RECEIPT, 'target', 'x', receiptOf],
  [RECEIPT, 'requestHash', OTHER_HASH, receiptOf],
  [RECEIPT, 'attempt', 9, receiptOf],
  [RECEIPT, 'leaseVersion', 9, receiptOf],
  [RECEIPT, 'intentAt', EARLIER, receiptOf],
  [RECEIPT, 'openSince', EARLIER, receiptOf],
  [RECEIPT, 'grounds', undefined, receiptOf],
  [RECEIPT, 'grounds.approvalId', 'made-up', receiptOf],
  [RECEIPT, 'grounds.approvalId', undefined, receiptOf],
  [RECEIPT, 'grounds.policyHash', OTHER_HASH, receiptOf],
  [RECEIPT, 'grounds.policies', ['other'], receiptOf],
  [RECEIPT, 'outcome', 'succeeded', receiptOf],
  [RECEIPT, 'settledAt', EARLIER, receiptOf],
  [RECEIPT, 'recovered', true, receiptOf],
  [RECEIPT, 'output.sha256', OTHER_HASH, receiptOf],
  [RECEIPT, 'reversedAt', EARLIER, receiptOf],
  [RECEIPT, 'reversedBy', 'made-up', receiptOf],
  ['receipt 1 (classify)', 'grounds.approvalId', 'run_00000001.3-1', ({ receipts }) => receipts[0]],
  ['approval 1 (post)', 'step', 'post', approvalOf],
  [APPROVAL, 'index', 2, approvalOf],
  [APPROVAL, 'status', 'rejected', approvalOf],
  [APPROVAL, 'asks', 'mode', approvalOf],
  [APPROVAL, 'requestedAt', EARLIER, approvalOf],
  [APPROVAL, 'slaAt', EARLIER, approvalOf],
  [APPROVAL, 'expiresAt', EARLIER, approvalOf],
  [APPROVAL, 'remindedAt', EARLIER, approvalOf],
  [APPROVAL, 'escalatedAt', EARLIER, approvalOf],
  [APPROVAL, 'decidedAt', EARLIER, approvalOf],
  [APPROVAL, 'actionHash', OTHER_HASH, approvalOf],
  [APPROVAL, 'action.target', 'x', approvalOf],
  [APPROVAL, 'grounds.policyHash', OTHER_HASH, approvalOf],
  [APPROVAL, 'grounds.reasons', [], approvalOf],
  [APPROVAL, 'requirement.quorum', 1, approvalOf],
  [APPROVAL, 'requirement.tier', 'low', approvalOf],
  [APPROVAL, 'requirement.groups', [], approvalOf],
  [APPROVAL, 'makers', ['olga'], approvalOf],
  [APPROVAL, 'votes', [], approvalOf],
  [APPROVAL, 'edits', [], approvalOf],
  [APPROVAL, 'person', 'mallory', ({ approvals }) => approvals[0]?.votes[0]],
  [APPROVAL, 'onBehalfOf', 'mallory', ({ approvals }) => approvals[0]?.votes[0]],
  [APPROVAL, 'reason', undefined, ({ approvals }) => approvals[0]?.votes[0]],
  [APPROVAL, 'at', EARLIER, ({ approvals }) => approvals[0]?.votes[0]],
  [APPROVAL, 'person', 'ben', ({ approvals }) => approvals[0]?.edits[0]],
  [APPROVAL, 'at', EARLIER, ({ approvals }) => approvals[0]?.edits[0]],
  [APPROVAL, 'previousHash', OTHER_HASH, ({ approvals }) => approvals[0]?.edits[0]],
  [APPROVAL, 'field', 'other', ({ approvals }) => approvals[0]?.edits[0]?.changes[0]],
];

describe('in a bundle with a valid signature, the verifier names the entry and field that contradict the commits', () => {
  it.each(CONTRADICTIONS)('%s: %s becomes %o', async (entry, field, value, of) => {
    const held = await resealed((document) => {
      const [name = '', inner] = field.split('.');
      const holder = of(document) as Record<string, object> | undefined;
      edit(inner === undefined ? holder : holder?.[name], { [inner ?? name]: value });
    });
    expect(problemOf(held)).toEqual({ entry, problem: expect.stringContaining(field) });
  });
});

it.each([
  ['accepted', 'run.accepted', 'automation'],
  ['ended', 'run.status_changed', 'status'],
])('an entry is rejected that says that the run was %s without a commit', async (_what, type, field) => {
  const held = await resealed(({ commits, head }) => {
    for (const [index, commit] of commits.entries()) {
      const events = commit.events.map((event) => (event.type === type ? { type: 'run.blessed' } : event));
      rehash(commit, { events, prevHash: commits[index - 1]?.hash ?? commit.prevHash });
    }
    head.hash = commits.at(-1)?.hash ?? '';
  });
  expect(problemOf(held)).toMatchObject({ entry: 'run', problem: expect.stringContaining(`says ${field}: `) });
});

it('the deadline of a run must be the one that its commits extended it to', async () => {
  const withDeadline = (deadlineAt: string) =>
    resealed(({ commits, head, run }) => {
      const last = commits.at(-1);
      const extended = { type: 'run.deadline_extended', deadlineAt: run.deadlineAt, waitedMs: 1 };
      rehash(last, { events: [...(last?.events ?? []), extended] });
      head.hash = last?.hash ?? '';
      run.deadlineAt = deadlineAt;
    });
  const { deadlineAt } = parsedDocument(bundle).run;
  expect(problemOf(await withDeadline(deadlineAt))).toMatchObject({ verdict: 'valid' });
  expect(problemOf(await withDeadline('2030-01-01T00:00:00.000Z'))).toMatchObject({
    entry: 'run',
    problem: expect.stringContaining('says deadlineAt: 2030'),
  });
});

describe('in a bundle with a valid signature, the verifier names the entry that', () => {
  it.each<Case>([
    ['is a step left out', ({ steps }) => steps.splice(2, 1), { entry: 'step of post', problem: /missing/ }],
    ['is a step out of order', ({ steps }) => swap(steps, 0, 1), { entry: 'step 2 (classify)', problem: /order/ }],
    [
      'is a step that is there twice',
      ({ steps }) => steps.splice(1, 0, ...steps.slice(0, 1)),
      { entry: 'step 2 (classify)', problem: /duplicated/ },
    ],
    [
      'is a step that is in no commit',
      ({ steps }) => edit(steps[0], { index: 7 }),
      { entry: 'step 1 (classify)', problem: /no commit/ },
    ],
    [
      'is a write left out',
      ({ receipts }) => receipts.splice(3, 1),
      { entry: 'receipt of undo_assign', problem: /missing/ },
    ],
    [
      'is a write that is there twice',
      ({ receipts }) => receipts.splice(3, 0, ...receipts.slice(3)),
      { entry: 'receipt 5 (undo_assign)', problem: /duplicated/ },
    ],
    [
      'is a write nobody intended',
      ({ receipts }) => edit(receipts[0], { key: 'made:up' }),
      { entry: 'receipt 1 (classify)', problem: /no commit/ },
    ],
    [
      'is a write of another run',
      ({ receipts }) => edit(receipts[0], { runId: 'run_00000009' }),
      { entry: 'receipt 1 (classify)', problem: /did not reuse/ },
    ],
    [
      'is an approval left out',
      ({ approvals }) => approvals.pop(),
      { entry: 'approval of assign', problem: /missing/ },
    ],
    [
      'is an approval that is there twice',
      ({ approvals }) => approvals.push(...approvals),
      { entry: 'approval 2 (assign)', problem: /duplicated/ },
    ],
    [
      'is an approval nobody asked for',
      ({ approvals }) => edit(approvals[0], { approvalId: 'made-up' }),
      { entry: 'approval 1 (assign)', problem: /no commit/ },
    ],
    [
      'has fewer votes than there were',
      ({ approvals }) => approvals[0]?.votes.splice(1, 1),
      { entry: 'approval 1 (assign)', problem: /has 1 votes; its commits have 2/ },
    ],
    [
      'is what policy said',
      ({ decisions }) => edit(decisions[1], { verdict: 'allow' }),
      { entry: 'decision 2 (assign)', problem: /differs from its commit/ },
    ],
    ['is what it cost', ({ cost }) => cost.pop(), { entry: 'cost', problem: /sum of the receipts/ }],
    [
      'is what it asked of AWS',
      ({ awsRequestsAtLeast }) => edit(awsRequestsAtLeast, { 'dynamodb.TransactWriteItems': 9 }),
      { entry: 'awsRequestsAtLeast', problem: /commits, approvals and cost/ },
    ],
    ['is its policies', ({ versions }) => versions.policies.pop(), { entry: 'versions', problem: /those of the run/ }],
    [
      'does not match the format',
      ({ receipts }) => edit(receipts[2], { note: 'x' }),
      { entry: 'receipt 3 (post)', problem: /does not match the format: Unrecognized key: "note"/ },
    ],
    [
      'has a time without milliseconds',
      ({ run }) => edit(run, { createdAt: run.createdAt.replace(/\.\d+Z/, 'Z') }),
      { entry: 'run', problem: /does not match the format: createdAt/ },
    ],
  ])('%s', async (_what, change, expected) => {
    expect(problemOf(await resealed(change))).toEqual({
      entry: expected.entry,
      problem: expect.stringMatching(expected.problem),
    });
  });
});

/** The document with another event at the end of a commit, and a new chain. */
const withEvent = (seq: number, event: { type: string; [field: string]: unknown }) =>
  resealed(({ commits, head }) => {
    for (const [index, commit] of commits.entries()) {
      const events = commit.seq === seq ? [...commit.events, event] : commit.events;
      rehash(commit, { events, prevHash: commits[index - 1]?.hash ?? commit.prevHash });
    }
    head.hash = commits.at(-1)?.hash ?? '';
  });

describe('both verifiers reject a commit', () => {
  const waiting = { type: 'step.waiting', awaits: 'time', until: EARLIER };
  const vote = { type: 'approval.voted', step: 'assign', person: 'ben', via: 'api', decision: 'approve' };
  const intended = {
    type: 'write.intended',
    step: 'assign',
    receiptKey: 'k',
    tool: 't',
    target: 'x',
    requestHash: OTHER_HASH,
  };
  it.each([
    [
      'that names a step with another id',
      { type: 'step.canceled', step: 'other', index: 1 },
      'commit 5',
      /earlier events name it/,
    ],
    ['that names a step that is not shown', { ...waiting, step: 'other', index: 9 }, 'step of other', /missing/],
    [
      'with a vote for an approval that nobody requested',
      { ...vote, approvalId: 'run_1.9-9' },
      'commit 5',
      /not requested/,
    ],
    ['that begins a write without a claim', intended, 'commit 5', /without a claim/],
  ])('%s', async (_what, event, entry, problem) => {
    const held = await withEvent(5, event);
    expect(problemOf(held)).toEqual({ entry, problem: expect.stringMatching(problem) });
    expect(isGenuine(String(held.document), String(held.envelope), PUBLIC_KEY)).toBe(false);
  });

  it('whose step was rejected and shows another target than the one that policy decided on', async () => {
    const [rejected] = rejection.vectors.filter(({ breaks }) => breaks.length === 0);
    const document: EvidenceDocument = JSON.parse(rejected?.document ?? '');
    Object.assign(document.steps[0]?.action ?? {}, { target: 'servicenow:acme:incident:other' });
    const held = await resealedAs(bundle, document);
    expect(problemOf(held)).toEqual({ entry: 'step 1 (assign)', problem: expect.stringContaining('action.target') });
    expect(isGenuine(String(held.document), String(held.envelope), PUBLIC_KEY)).toBe(false);
  });
});
