/**
 * A zero-width space, spelled so that approvers see it. GitHub looks for mentions, references and links in the rendered
 * text, where a backslash is gone, but a character between `@` and the name is not.
 */
const BREAK = '&#8203;';
/** Indented text would be code. */
const INDENT = { ' ': '&nbsp;', '\t': '&nbsp;'.repeat(4) };

/** In this order: later ones add characters that earlier ones would escape. */
const MARKUP: readonly [RegExp, string][] = [
  [/&/g, '&amp;'],
  [/</g, '&lt;'],
  [/>/g, '&gt;'],
  [/[\\`*_~[\]|$]/g, '\\$&'],
  // Only at the beginning of a line: lists, underlined headings, a table's second row.
  [/^(?:[-+=]|:(?=-))/gm, '\\$&'],
  [/^(\d{1,9})([.)])/gm, '$1\\$2'],
  // An issue, whose timeline would show the reference and which `Fixes #1` may close; and a heading.
  [/#/g, `#${BREAK}`],
  [/(?<![a-z0-9])(gh)-(?=\d)/gi, `$1-${BREAK}`],
  // A person, a team, a mail address, a commit.
  [/@/g, `@${BREAK}`],
  // Links; one that leads to an issue is a reference to it.
  [/:\/\//g, `:${BREAK}//`],
  [/(www)\./gi, `$1${BREAK}.`],
];

/** Markdown that GitHub shows as this text, letter for letter: it mentions nobody, refers to nothing and links nowhere. */
export function plainText(text: string): string {
  const lines = text.replace(/\r\n?/g, '\n');
  return MARKUP.reduce((escaped, [pattern, replacement]) => escaped.replace(pattern, replacement), lines).replace(
    /^[ \t]+/gm,
    (indent) => [...indent].map((character) => INDENT[character as ' ' | '\t']).join(''),
  );
}
