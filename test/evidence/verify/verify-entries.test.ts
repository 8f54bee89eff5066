import { describe, expect, it } from 'vitest';
import { DocumentTexts, indexOf } from '../../../lambdas/evidence/bundle/document-texts.ts';
import { hashOf } from '../../../lambdas/run/canonical-json.ts';
import { parsedDocument } from '../bundle/sealed-bundle.ts';
import { bundle, type Case, changed, other, problemOf, swap } from './tampering.ts';

describe('the verifier of the other entries names the one that', () => {
  it.each<Case>([
    [
      'was edited: the run',
      ({ run }) => Object.assign(run, { automation: 'x' }),
      { entry: 'run', problem: /was edited/ },
    ],
    [
      'was edited: its status',
      ({ run }) => Object.assign(run, { status: 'succeeded' }),
      { entry: 'run', problem: /ended as failed/ },
    ],
    [
      'was edited: the trigger',
      ({ trigger }) => Object.assign(trigger, { event: 'x' }),
      { entry: 'trigger', problem: /edited/ },
    ],
    [
      'was edited: a receipt',
      ({ receipts }) => Object.assign(receipts[1]?.response ?? {}, { status: 201 }),
      { entry: 'receipt 2 (assign)', problem: /was edited/ },
    ],
    [
      'was edited: a step',
      ({ steps }) => Object.assign(steps[0] ?? {}, { attempt: 2 }),
      { entry: 'step 1 (classify)', problem: /edited/ },
    ],
    [
      'was edited: a vote',
      ({ approvals }) => Object.assign(approvals[0]?.votes[1] ?? {}, { person: 'mallory' }),
      { entry: 'approval 1 (assign)', problem: /edited/ },
    ],
    [
      'was edited: a decision',
      ({ decisions }) => Object.assign(decisions[1] ?? {}, { verdict: 'allow' }),
      { entry: 'decision 2 (assign)', problem: /edited/ },
    ],
    [
      'was edited: a cost',
      ({ cost }) => Object.assign(cost[0] ?? {}, { usd: 0 }),
      { entry: 'cost 1', problem: /edited/ },
    ],
    [
      'was edited: the requests to AWS',
      ({ awsRequestsAtLeast }) => Object.assign(awsRequestsAtLeast, { 'states.StartExecution': 2 }),
      { entry: 'awsRequestsAtLeast', problem: /edited/ },
    ],
    [
      'was edited: the versions',
      ({ versions }) => Object.assign(versions, { runtime: '9' }),
      { entry: 'versions', problem: /edited/ },
    ],
    ['was edited: the head', ({ head }) => Object.assign(head, { count: 9 }), { entry: 'head', problem: /edited/ }],
    ['was dropped', ({ receipts }) => receipts.splice(1, 1), { entry: 'receipt 2', problem: /of 4 is missing/ }],
    ['was dropped last', ({ receipts }) => receipts.pop(), { entry: 'receipt 4', problem: /of 4 is missing/ }],
    ['was dropped alone', ({ approvals }) => approvals.pop(), { entry: 'approval 1', problem: /of 1 is missing/ }],
    [
      'was doubled',
      ({ receipts }) => receipts.push(...receipts.slice(0, 1)),
      { entry: 'receipt 5 (classify)', problem: /duplicated/ },
    ],
    ['was moved', ({ steps }) => swap(steps, 1, 2), { entry: 'step 2 (post)', problem: /in the wrong position/ }],
    [
      'was added',
      ({ receipts }) => receipts.splice(1, 0, ...other.receipts.slice(1, 2)),
      { entry: 'receipt 2 (assign)', problem: /was added/ },
    ],
    [
      'comes from another run',
      (document) => {
        document.approvals = other.approvals;
      },
      { entry: 'approval 1 (assign)', problem: /was edited/ },
    ],
    [
      'was edited, the index with it',
      (document) => {
        Object.assign(document.receipts[1] ?? {}, { attempt: 2 });
        document.index = indexOf(new DocumentTexts(document));
      },
      { entry: 'index', problem: /another index was signed/ },
    ],
    [
      'has a field that evidence does not have',
      ({ receipts }) => Object.assign(receipts[2] ?? {}, { note: 'x' }),
      { entry: 'receipt 3 (post)', problem: /was edited/ },
    ],
    [
      'has a value of another kind',
      ({ commits }) => Object.assign(commits[2] ?? {}, { seq: '3' }),
      { entry: 'commit 3', problem: /seq/ },
    ],
    ['lost a field', ({ run }) => Reflect.deleteProperty(run, 'runId'), { entry: 'run', problem: /runId/ }],
    [
      'is of another run altogether',
      (document) => Object.assign(document, other),
      { entry: 'run', problem: /envelope is of acme\/run_00000001/ },
    ],
    [
      'carries the text where its digest belongs',
      ({ commits }) => Object.assign(commits.at(-1)?.events.at(-1) ?? {}, { reason: 'CANARY-reason' }),
      { entry: 'commit 10', problem: /was edited/ },
    ],
  ])('%s', (_what, change, expected) => {
    expect(problemOf(changed(change))).toEqual({
      entry: expected.entry,
      problem: expect.stringMatching(expected.problem),
    });
  });

  it.each<[string, (text: string) => string]>([
    ['white space', (text) => text.replace('{', '{ ')],
    ['another order of keys', (text) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(text)).reverse()))],
    ['a key given twice', (text) => text.replace('{', '{"format":"countersign.evidence/2",')],
    ['another spelling of a character', (text) => text.replace('"acme', '"\\u0061cme')],
  ])('is written in another form: %s', (_what, write) => {
    const document = Buffer.from(write(bundle.document.toString()));
    expect(problemOf({ ...bundle, document })).toEqual({
      entry: 'document',
      problem: expect.stringMatching(/canonical/),
    });
  });

  it.each([
    ['half a character', '"type":"run.accepted"', '"type":"run.accepted","x":"\\ud800"'],
    ['a number beyond all bounds', '"type":"run.accepted"', '"type":"run.accepted","x":1e999'],
  ])('has %s, which a hashed entry never has', (_what, from, to) => {
    const document = Buffer.from(bundle.document.toString().replace(from, to));
    expect(problemOf({ ...bundle, document })).toEqual({
      entry: 'document',
      problem: expect.stringMatching(/without canonical form/),
    });
  });

  it.each<[string, (bytes: Buffer) => Buffer]>([
    ['cut short', (bytes) => bytes.subarray(0, -100)],
    ['empty', () => Buffer.alloc(0)],
    ['not text', (bytes) => Buffer.concat([bytes.subarray(0, 50), Buffer.from([0xff]), bytes.subarray(51)])],
  ])('is %s', (_what, change) => {
    const document = change(bundle.document);
    expect(problemOf({ ...bundle, document })).toEqual({
      entry: 'document',
      problem: expect.stringMatching(/not JSON/),
    });
  });
});

it('the index contains every entry except the commits, which the hash chain covers', () => {
  const { format: _format, index, commits: _commits, head: _head, ...entries } = parsedDocument(bundle);
  expect(Object.keys(index).sort()).toEqual(Object.keys(entries).sort());
  expect(index.receipts[1]).toBe(hashOf(entries.receipts[1]));
});
