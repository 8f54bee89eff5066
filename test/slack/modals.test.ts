import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Modal } from '../../lambdas/slack/block-kit.ts';
import { escapeAndCut } from '../../lambdas/slack/escape-hidden-characters.ts';
import {
  editModal,
  hasInputs,
  rejectModal,
  type Typed,
  typedEdit,
  typedReason,
} from '../../lambdas/slack/modal/decision-modals.ts';
import { showAllModal } from '../../lambdas/slack/modal/show-all-modal.ts';
import { viewProblems } from '../../local/simulators/slack/block-limits.ts';
import { approvalOf, writing } from './approvals.ts';
import { hostileText, TRICKS } from './hostile-text.ts';
import { readable, shownTexts } from './shown-text.ts';

const SEED = 20_260_102;
const inputsOf = ({ blocks }: Modal) => blocks.flatMap((block) => (block.type === 'input' ? [block] : []));

/** What Slack sends if a person submits the modal with these changes: everything, typed or not. */
function submitted(modal: Modal, changes: Record<string, string> = {}): Typed {
  return Object.fromEntries(
    inputsOf(modal).map(({ block_id, label, element }) => {
      const typed = Object.hasOwn(changes, label.text) ? changes[label.text] : element.initial_value;
      const value = typed ?? '';
      return [block_id, { [element.action_id]: { value: value === '' ? null : value } }];
    }),
  );
}

describe('the modal of a rejection', () => {
  it('requires a reason and knows what it is for', () => {
    const modal = rejectModal(approvalOf());
    expect(viewProblems(modal)).toBeUndefined();
    expect(inputsOf(modal)).toMatchObject([{ optional: false }]);
    expect(JSON.parse(modal.private_metadata)).toEqual({
      approvalId: 'run_0123456789abcdef.1',
      actionHash: 'a'.repeat(64),
    });
    expect(typedReason({ reason: { typed: { value: '  too risky ' } } })).toBe('too risky');
    expect(typedReason({ reason: { typed: { value: null } } })).toBe('');
  });
});

describe('the modal of an edit', () => {
  const FIELDS = { group: 'Database', state: 2, labels: ['a', 'b'], note: 'one\r\ntwo', empty: '' };
  const modal = editModal(approvalOf(writing(FIELDS)));
  const edited = (changes: Record<string, string>) => typedEdit(FIELDS, submitted(modal, changes));

  it('holds each field as it is; submitted as it is, it changes nothing', () => {
    expect(viewProblems(modal)).toBeUndefined();
    expect(inputsOf(modal).map(({ label, element }) => [label.text, element.initial_value])).toEqual([
      ['group', 'Database'],
      ['state', '2'],
      ['labels', '[\n  "a",\n  "b"\n]'],
      ['note', 'one\r\ntwo'],
      ['empty', undefined],
    ]);
    expect(edited({})).toEqual({ changed: {} });
    expect(edited({ note: 'one\ntwo' })).toEqual({ changed: {} });
  });

  it('gives the changed fields alone, text as text and everything else as what it is', () => {
    expect(edited({ group: '7', state: '3', empty: 'x' })).toEqual({ changed: { group: '7', state: 3, empty: 'x' } });
    expect(edited({ labels: '["c"]', group: '' })).toEqual({ changed: { labels: ['c'], group: '' } });
  });

  it('says at the field what is wrong with it', () => {
    expect(edited({ state: 'three' })).toEqual({ errors: { 'field-1': expect.stringContaining('Enter JSON') } });
  });

  it('leaves out what Slack cannot take, and says so', () => {
    const partly = editModal(approvalOf(writing({ long: 'x'.repeat(3_001), short: 'y' })));
    expect(inputsOf(partly).map(({ block_id, label }) => [block_id, label.text])).toEqual([['field-1', 'short']]);
    expect(readable(partly.blocks)).toContain('1 more field does not fit into this form; edit it through the API.');
    expect(typedEdit({ long: 'x'.repeat(3_001), short: 'y' }, submitted(partly, { short: 'z' }))).toEqual({
      changed: { short: 'z' },
    });
    expect(hasInputs(editModal(approvalOf(writing({ long: 'x'.repeat(3_001) }))))).toBe(false);
  });

  it('has room for the others beside one that is far too long, and for as many as Slack takes', () => {
    const beside = editModal(approvalOf(writing({ long: 'x'.repeat(200_000), short: 'y' })));
    expect(inputsOf(beside).map(({ label }) => label.text)).toEqual(['short']);
    const hebrew = Object.fromEntries(Array.from({ length: 40 }, (_each, index) => [`f${index}`, 'א'.repeat(3_000)]));
    const partly = editModal(approvalOf(writing(hebrew)));
    expect(viewProblems(partly)).toBeUndefined();
    expect(inputsOf(partly)).toHaveLength(24);
    expect(readable(partly.blocks)).toContain('16 more fields do not fit into this form; edit them through the API.');
  });

  it('warns of characters that cannot be seen in a form', () => {
    const [plain, hidden] = inputsOf(editModal(approvalOf(writing({ a: 'plain\ntext', b: 'a\u202Eb' }))));
    expect([plain?.hint, hidden?.hint?.text]).toEqual([undefined, expect.stringContaining('invisible characters')]);
  });

  it('is one that Slack opens, whatever is to be written', () => {
    fc.assert(
      fc.property(fc.dictionary(hostileText, fc.oneof(hostileText, fc.jsonValue()), { maxKeys: 30 }), (fields) => {
        const view = editModal(approvalOf(writing(fields)));
        expect(viewProblems(view)).toBeUndefined();
        expect(typedEdit(fields, submitted(view))).toEqual({ changed: {} });
      }),
      { seed: SEED, numRuns: 60 },
    );
  });
});

describe('the modal that shows all', () => {
  /** Everything on all pages, turned one after the other. */
  function allPages(approval: ReturnType<typeof approvalOf>): Modal[] {
    const pages = [showAllModal(approval, 0)];
    while (pages.at(-1)?.submit?.text === 'Next page') pages.push(showAllModal(approval, pages.length));
    return pages;
  }

  /** What all pages say of each thing, its boxes put together. */
  function fullTexts(pages: Modal[]): Map<string, string> {
    const said = new Map<string, string>();
    for (const block of pages.flatMap(({ blocks }) => blocks)) {
      const texts = shownTexts([block]);
      const label = texts.flatMap(({ text, as }) => (as === 'box' ? [] : [text]));
      const name = label.join('').replace(/, continued$/, '');
      said.set(name, (said.get(name) ?? '') + texts.flatMap(({ text, as }) => (as === 'box' ? [text] : [])).join(''));
    }
    return said;
  }

  it('has 40 fields of 3,000 characters, before and after, complete', () => {
    const long = Object.fromEntries(
      Array.from({ length: 40 }, (_each, index) => [
        `field_${index}`,
        `${index} ${TRICKS.join(' ')} `.repeat(20).slice(0, 3_000),
      ]),
    );
    const before = Object.fromEntries(Object.keys(long).map((name) => [name, `old ${long[name]}`]));
    const pages = allPages(approvalOf({ ...writing(long), before }));
    for (const page of pages) expect(viewProblems(page)).toBeUndefined();
    expect(pages.length).toBeGreaterThan(5);
    const said = fullTexts(pages);
    for (const [name, value] of Object.entries(long)) {
      expect(said.get(`${name} will be`)).toBe(escapeAndCut(value, Number.POSITIVE_INFINITY, 'many').shown);
      expect(said.get(`${name} is now`)).toBe(escapeAndCut(`old ${value}`, Number.POSITIVE_INFINITY, 'many').shown);
    }
  });

  it('turns from the last page to the first', () => {
    const approval = approvalOf(writing({ note: 'x'.repeat(60_000) }));
    const pages = allPages(approval);
    expect(pages.map(({ title }) => title.text)).toEqual(['Page 1 of 3', 'Page 2 of 3', 'Page 3 of 3']);
    expect(pages.at(-1)?.submit?.text).toBe('First page');
    expect(showAllModal(approval, 3)).toEqual(pages[0]);
  });

  it('is one page without a button where one is enough', () => {
    const modal = showAllModal(approvalOf(), 0);
    expect(viewProblems(modal)).toBeUndefined();
    expect(modal.submit).toBeUndefined();
    expect(readable(modal.blocks)).toContain('assignment_group is nowService Desk');
  });

  it('is one that Slack opens, whatever it is about', () => {
    fc.assert(
      fc.property(fc.dictionary(hostileText, hostileText, { maxKeys: 30 }), hostileText, (fields, title) => {
        for (const page of allPages(approvalOf({ ...writing(fields), before: fields, title }))) {
          expect(viewProblems(page)).toBeUndefined();
          expect(JSON.stringify(page)).not.toContain('"type":"mrkdwn"');
        }
      }),
      { seed: SEED, numRuns: 40 },
    );
  });
});
