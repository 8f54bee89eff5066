import * as fc from 'fast-check';
import { micromark } from 'micromark';
import { gfm, gfmHtml } from 'micromark-extension-gfm';
import { describe, expect, it } from 'vitest';
import { createComment } from '../../lambdas/connectors/github/comments.ts';
import { escapeMarkdown } from '../../lambdas/connectors/github/escape-markdown.ts';
import { addWorkNote } from '../../lambdas/connectors/servicenow/incidents.ts';

const ISSUE = { owner: 'o', repo: 'r', number: 7 };
const SYS_ID = '0123456789abcdef0123456789abcdef';

/** Renders like GitHub, which then searches the rendered text for mentions and references. */
const rendered = (markdown: string) =>
  micromark(markdown, { extensions: [gfm()], htmlExtensions: [gfmHtml()], allowDangerousHtml: true });

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"' };
/** The visible text. */
const shown = (html: string) =>
  html.replace(/<\/?(?:p|br \/)>/g, '').replace(/&(\w+);/g, (all, name) => ENTITIES[name] ?? all);
const letters = (text: string) => text.replaceAll('\u200b', '').replace(/\s+/g, ' ').trim();

/** What GitHub would link or mention in the rendered text. */
const ACTED_ON = [/@[a-z0-9]/i, /#\d/, /(?<![a-z0-9])gh-\d/i, /:\/\//, /www\./i];

const HOSTILE = [
  'cc @octocat and @octo-org/security',
  'Fixes #1, closes octo-org/payments#2, resolves GH-3',
  'see https://github.com/octo-org/payments/issues/9 and www.example.com',
  '![x](https://evil.example/pixel.png) [approve](https://evil.example)',
  '<img src="https://evil.example/p.png"> <details><summary>x</summary></details> <!-- countersign:0 -->',
  '# Approved\n## by security\n===\n---\n***',
  '- [x] done\n+ two\n1. three\n2) four\n> [!NOTE]\n> quoted',
  'a | b\n--|--\n1 | 2',
  'abc\n:--\nx',
  '    indented code\n\tby a tab\n```sh\nrm -rf /\n```\n~~~\nx',
  '[ref]: https://evil.example\n[ref] [^1]\n\n[^1]: a note',
  '*a* **b** _c_ __d__ ~~e~~ `f` \\*g\\* &lt;b&gt; &#64;octocat $x$',
  'mail a@example.com, <a@example.com>, mailto:a@example.com, a_www.x.com',
];

describe('plain text in a GitHub comment', () => {
  const expectPlain = (text: string) => {
    const html = rendered(escapeMarkdown(text));
    expect(html.match(/<(?!\/?p>|br \/>)[^>]*>/g) ?? []).toEqual([]);
    expect(letters(shown(html))).toBe(letters(text));
    for (const pattern of ACTED_ON) expect(shown(html)).not.toMatch(pattern);
  };

  it.each(HOSTILE)('displays %j literally', (text) => expectPlain(text));

  it('displays any text literally', () => {
    const pieces = fc.constantFrom(
      ...HOSTILE.flatMap((text) => text.split(/\b/)),
      '\n',
      ' ',
      '\t',
      '\\',
      '@',
      '#',
      '`',
    );
    const text = fc.array(fc.oneof(pieces, fc.string()), { maxLength: 30 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, (hostile) => {
        // CommonMark replaces these, and no other character ends a line.
        expectPlain(hostile.replace(/[\0\v\f]/g, ''));
      }),
      { numRuns: 500 },
    );
  });
});

describe('external text', () => {
  const comment = (input: object) => createComment.propose(createComment.parse({ ...ISSUE, ...input }), 'acme');
  const note = (input: object) => addWorkNote.propose(addWorkNote.parse({ sysId: SYS_ID, ...input }), 'acme');

  it('is shown to approvers in the form in which it is written', () => {
    expect(comment({ body: 'ask @octocat about #7' }).fields).toEqual({ body: 'ask @&#8203;octocat about #&#8203;7' });
    expect(note({ note: '[code]<b>x</b>[/CODE] @[6816f79cc0a8016401c5a33be04be441:Abel]' }).fields).toEqual({
      note: '[ code]<b>x</b>[ /CODE] @[ 6816f79cc0a8016401c5a33be04be441:Abel]',
    });
  });

  it('is not escaped if the workflow marks it as markdown', () => {
    expect(comment({ body: 'ask @octocat', markdown: true }).fields).toEqual({ body: 'ask @octocat' });
    expect(note({ note: '[code]<b>x</b>[/code]', markdown: true }).fields).toEqual({ note: '[code]<b>x</b>[/code]' });
  });

  it('is another write than the same text as markdown, unless it has no markup', () => {
    expect(comment({ body: '*x*' }).key).not.toBe(comment({ body: '*x*', markdown: true }).key);
    expect(comment({ body: 'x' }).key).toBe(comment({ body: 'x', markdown: true }).key);
  });

  it('is not escaped a second time when an approver has edited it', () => {
    for (const [operation, input, field] of [
      [createComment, { ...ISSUE, body: 'ask @octocat' }, 'body'],
      [addWorkNote, { sysId: SYS_ID, note: '[code]x[/code]' }, 'note'],
    ] as const) {
      const { fields } = operation.propose(operation.parse(input), 'acme');
      const edited = operation.edited(operation.parse(input), { [field]: `${fields[field]}, now` });
      const again = operation.propose(operation.parse(edited), 'acme');
      expect(again.fields).toEqual({ [field]: `${fields[field]}, now` });
    }
  });

  it('must fit after escaping', () => {
    const long = { ...ISSUE, body: '@'.repeat(15_000) };
    expect(() => createComment.parse(long)).toThrow(expect.objectContaining({ code: 'INPUT_INVALID' }));
    expect(createComment.parse({ ...long, markdown: true })).toMatchObject({ markdown: true });
    const note = { sysId: SYS_ID, note: '@['.repeat(2_000) };
    expect(() => addWorkNote.parse(note)).toThrow(expect.objectContaining({ code: 'INPUT_INVALID' }));
  });
});
