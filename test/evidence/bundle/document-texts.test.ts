import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EvidenceDocument } from '../../../lambdas/evidence/bundle/document.ts';
import { DocumentTexts, indexOf } from '../../../lambdas/evidence/bundle/document-texts.ts';
import { canonicalJson, hashOf } from '../../../lambdas/run/canonical-json.ts';
import { anyCharacter } from '../../fakes/any-character.ts';

const SEED = 20_260_102;

const text = fc.string({ unit: anyCharacter }).map((each) => each.toWellFormed());
const entry = fc.dictionary(text, fc.jsonValue({ maxDepth: 2 }), { noNullPrototype: true });
const entries = fc.array(entry, { maxLength: 4 });
const commit = fc.record(
  { seq: fc.nat(), prevHash: text, at: text, events: entries, hash: text },
  { noNullPrototype: true },
);
const documents = fc
  .record({
    format: text,
    head: entry,
    run: entry,
    trigger: entry,
    steps: entries,
    decisions: entries,
    approvals: entries,
    receipts: entries,
    cost: entries,
    awsRequestsAtLeast: entry,
    versions: entry,
    commits: fc.array(commit, { maxLength: 4 }),
  })
  .map((document) => document as unknown as Omit<EvidenceDocument, 'index'>);

describe('the texts of a document', () => {
  it('make the canonical text of the whole document', () => {
    fc.assert(
      fc.property(documents, (document) => {
        const texts = new DocumentTexts(document);
        const index = indexOf(texts);
        expect(texts.whole(index)).toBe(canonicalJson({ ...document, index }));
      }),
      { seed: SEED, numRuns: 40 },
    );
  });

  it('give the hashes of entries and commits', () => {
    fc.assert(
      fc.property(documents, (document) => {
        const texts = new DocumentTexts(document);
        for (const [at, { hash: _, ...hashed }] of document.commits.entries()) {
          expect(texts.hashOfCommit(at)).toBe(hashOf(hashed));
        }
        expect(indexOf(texts)).toMatchObject({
          run: hashOf(document.run),
          versions: hashOf(document.versions),
          steps: document.steps.map((each) => hashOf(each)),
          receipts: document.receipts.map((each) => hashOf(each)),
        });
      }),
      { seed: SEED, numRuns: 40 },
    );
  });

  it('refuse a commit without canonical form only when it is needed', () => {
    const [document] = fc.sample(documents, { seed: SEED, numRuns: 1 }) as [Omit<EvidenceDocument, 'index'>];
    const commit = { seq: 1, prevHash: '', at: '', events: [], hash: '' };
    const commits = [commit, { ...commit, events: [{ type: '\ud800' }] }];
    const texts = new DocumentTexts({ ...document, commits });
    expect(texts.hashOfCommit(0)).toMatch(/^[0-9a-f]{64}$/);
    expect(() => texts.hashOfCommit(1)).toThrow();
    expect(() => texts.whole(indexOf(texts))).toThrow();
  });
});
