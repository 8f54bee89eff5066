import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Approval } from '../../lambdas/run/approval.ts';
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

/** The values that Slack sends if a person submits the modal with these changes: all inputs, changed or not. */
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
  it('requires a reason and contains the approval and its action', () => {
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
  const edited = (changes: Record<string, string>) => typedEdit(approvalOf(writing(FIELDS)), submitted(modal, changes));

  it('offers only fields whose change is accepted', () => {
    const action = {
      ...writing({ text: 'a', threadTs: '1.000001' }).action,
      tool: 'slack.message.post',
    } as NonNullable<Approval['action']>;
    const form = editModal(approvalOf({ action }));
    expect(inputsOf(form).map(({ label }) => label.text)).toEqual(['text']);
    expect(readable(form.blocks)).not.toContain('more field');
    expect(typedEdit(approvalOf({ action }), submitted(form, { text: 'b' }))).toEqual({ changed: { text: 'b' } });
  });

  it('has the current value of each field; submitted unchanged, it changes nothing', () => {
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

  it('returns only the changed fields, text as text and other values parsed', () => {
    expect(edited({ group: '7', state: '3', empty: 'x' })).toEqual({ changed: { group: '7', state: 3, empty: 'x' } });
    expect(edited({ labels: '["c"]', group: '' })).toEqual({ changed: { labels: ['c'], group: '' } });
  });

  it('shows an error at its field', () => {
    expect(edited({ state: 'three' })).toEqual({ errors: { 'field-1': expect.stringContaining('Enter JSON') } });
  });

  it('omits fields that are too long for Slack, and says so', () => {
    const approval = approvalOf(writing({ long: 'x'.repeat(3_001), short: 'y' }));
    const partly = editModal(approval);
    expect(inputsOf(partly).map(({ block_id, label }) => [block_id, label.text])).toEqual([['field-1', 'short']]);
    expect(readable(partly.blocks)).toContain(
      '1 more field does not fit into this form; edit it with "countersign approvals edit".',
    );
    expect(typedEdit(approval, submitted(partly, { short: 'z' }))).toEqual({ changed: { short: 'z' } });
    expect(hasInputs(editModal(approvalOf(writing({ long: 'x'.repeat(3_001) }))))).toBe(false);
  });

  it('has the other fields if one is far too long, up to Slack’s limit', () => {
    const beside = editModal(approvalOf(writing({ long: 'x'.repeat(200_000), short: 'y' })));
    expect(inputsOf(beside).map(({ label }) => label.text)).toEqual(['short']);
    const hebrew = Object.fromEntries(Array.from({ length: 40 }, (_each, index) => [`f${index}`, 'א'.repeat(3_000)]));
    const partly = editModal(approvalOf(writing(hebrew)));
    expect(viewProblems(partly)).toBeUndefined();
    expect(inputsOf(partly)).toHaveLength(24);
    expect(readable(partly.blocks)).toContain(
      '16 more fields do not fit into this form; edit them with "countersign approvals edit".',
    );
  });

  it('shows a reference by its name with the sys_id second, and says which names can be entered', () => {
    const [database, desk] = ['d'.repeat(32), 'e'.repeat(32)];
    const names = { assignment_group: { [database]: 'Database', [desk]: 'Service Desk' }, state: { 2: 'In Progress' } };
    const approval = approvalOf({ ...writing({ assignment_group: database, state: 2 }), names });
    const form = editModal(approval);
    expect(viewProblems(form)).toBeUndefined();
    expect(inputsOf(form).map(({ element, hint }) => [element.initial_value, hint?.text])).toEqual([
      [`Database (${database})`, 'Enter a sys_id, or one of these names: Database, Service Desk.'],
      ['2', undefined],
    ]);
    expect(typedEdit(approval, submitted(form))).toEqual({ changed: {} });
    expect(typedEdit(approval, submitted(form, { assignment_group: 'Service Desk' }))).toEqual({
      changed: { assignment_group: 'Service Desk' },
    });
  });

  it('warns about invisible characters', () => {
    const [plain, hidden] = inputsOf(editModal(approvalOf(writing({ a: 'plain\ntext', b: 'a\u202Eb' }))));
    expect([plain?.hint, hidden?.hint?.text]).toEqual([undefined, expect.stringContaining('invisible characters')]);
  });

  it('stays within Slack’s limits for any write', () => {
    fc.assert(
      fc.property(fc.dictionary(hostileText, fc.oneof(hostileText, fc.jsonValue()), { maxKeys: 30 }), (fields) => {
        const approval = approvalOf(writing(fields));
        const view = editModal(approval);
        expect(viewProblems(view)).toBeUndefined();
        expect(typedEdit(approval, submitted(view))).toEqual({ changed: {} });
      }),
      { seed: SEED, numRuns: 60 },
    );
  });
});

describe('the modal that shows all', () => {
  /** The blocks of all pages in order. */
  function allPages(approval: ReturnType<typeof approvalOf>): Modal[] {
    const pages = [showAllModal(approval, 0)];
    while (pages.at(-1)?.submit?.text === 'Next page') pages.push(showAllModal(approval, pages.length));
    return pages;
  }

  /** For each label, the text of its boxes on all pages. */
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

  it('shows the first page after the last', () => {
    const approval = approvalOf(writing({ note: 'x'.repeat(60_000) }));
    const pages = allPages(approval);
    expect(pages.map(({ title }) => title.text)).toEqual(['Page 1 of 3', 'Page 2 of 3', 'Page 3 of 3']);
    expect(pages.at(-1)?.submit?.text).toBe('First page');
    expect(showAllModal(approval, 3)).toEqual(pages[0]);
  });

  it('has no page button if one page is enough', () => {
    const modal = showAllModal(approvalOf(), 0);
    expect(viewProblems(modal)).toBeUndefined();
    expect(modal.submit).toBeUndefined();
    expect(readable(modal.blocks)).toContain('assignment_group is nowService Desk');
  });

  it('stays within Slack’s limits for any approval', () => {
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
