import { describe, expect, it } from 'vitest';
import { type Case, flawOf, resealed } from './tampering.ts';

describe('even of a bundle that is signed, the verifier names the entry that tells another story than its commits', () => {
  it.each<Case>([
    ['the run', ({ run }) => Object.assign(run, { automation: 'x' }), { entry: 'run', problem: /commit 1 accepted/ }],
    [
      'how it ended',
      ({ run }) => Object.assign(run, { status: 'succeeded' }),
      { entry: 'run', problem: /ended otherwise/ },
    ],
    [
      'the trigger',
      ({ trigger }) => Object.assign(trigger.payload, { sha256: '0'.repeat(64) }),
      { entry: 'trigger', problem: /commit 1 accepted/ },
    ],
    [
      'a step',
      ({ steps }) => Object.assign(steps[2] ?? {}, { status: 'succeeded' }),
      { entry: 'step 3 (tell)', problem: /do not say/ },
    ],
    [
      'what a step gave',
      ({ steps }) => Object.assign(steps[0]?.output ?? {}, { sha256: '0'.repeat(64) }),
      { entry: 'step 1 (classify)', problem: /another output/ },
    ],
    [
      'how a step failed',
      ({ steps }) => Object.assign(steps[2]?.error ?? {}, { code: 'OUTCOME_UNKNOWN' }),
      { entry: 'step 3 (tell)', problem: /something else/ },
    ],
    ['a step that is left out', ({ steps }) => steps.splice(2, 1), { entry: 'step of tell', problem: /missing/ }],
    [
      'what was written',
      ({ receipts }) => Object.assign(receipts[0] ?? {}, { requestHash: '0'.repeat(64) }),
      { entry: 'receipt 1 (classify)', problem: /another write/ },
    ],
    [
      'what became of a write',
      ({ receipts }) => Object.assign(receipts[1] ?? {}, { outcome: 'succeeded' }),
      { entry: 'receipt 2 (assign)', problem: /says succeeded, its commits say reversed/ },
    ],
    [
      'whose write it was',
      ({ receipts }) => Object.assign(receipts[0] ?? {}, { runId: 'run_00000009' }),
      { entry: 'receipt 1 (classify)', problem: /did not rest/ },
    ],
    [
      'a write nobody intended',
      ({ receipts }) => Object.assign(receipts[0] ?? {}, { key: 'made:up' }),
      { entry: 'receipt 1 (classify)', problem: /no commit intends/ },
    ],
    [
      'a write that is left out',
      ({ receipts }) => receipts.splice(3, 1),
      { entry: 'receipt of undo_assign', problem: /missing/ },
    ],
    [
      'who approved',
      ({ approvals }) => approvals[0]?.votes.splice(1, 1),
      { entry: 'approval 1 (assign)', problem: /other votes/ },
    ],
    [
      'what was approved',
      ({ approvals }) => Object.assign(approvals[0] ?? {}, { actionHash: '0'.repeat(64) }),
      { entry: 'approval 1 (assign)', problem: /another action/ },
    ],
    [
      'how an approval ended',
      ({ approvals }) => Object.assign(approvals[0] ?? {}, { status: 'rejected' }),
      { entry: 'approval 1 (assign)', problem: /is rejected, its commits say approved/ },
    ],
    [
      'an approval that is left out',
      ({ approvals }) => approvals.pop(),
      { entry: 'approval of assign', problem: /missing/ },
    ],
    [
      'an approval that was never asked for',
      ({ approvals }) => Object.assign(approvals[0] ?? {}, { approvalId: 'made-up' }),
      { entry: 'approval 1 (assign)', problem: /no commit/ },
    ],
    [
      'what policy said',
      ({ decisions }) => Object.assign(decisions[1] ?? {}, { verdict: 'allow' }),
      { entry: 'decision 2 (assign)', problem: /not what its commit says/ },
    ],
    ['what it cost', ({ cost }) => cost.pop(), { entry: 'cost', problem: /sum of the receipts/ }],
    [
      'what it asked of AWS',
      ({ awsRequestsAtLeast }) => Object.assign(awsRequestsAtLeast, { 'dynamodb.TransactWriteItems': 9 }),
      { entry: 'awsRequestsAtLeast', problem: /commits, approvals and cost/ },
    ],
    ['its policies', ({ versions }) => versions.policies.pop(), { entry: 'versions', problem: /not those of the run/ }],
  ])('%s', async (_what, change, expected) => {
    expect(flawOf(await resealed(change))).toEqual({
      entry: expected.entry,
      problem: expect.stringMatching(expected.problem),
    });
  });
});

it('even of a bundle that is signed, the verifier names the entry that is not as the format has it', async () => {
  const held = await resealed(({ receipts }) => Object.assign(receipts[2] ?? {}, { note: 'x' }));
  expect(flawOf(held)).toEqual({
    entry: 'receipt 3 (tell)',
    problem: 'is not as the format has it: Unrecognized key: "note"',
  });
});
