/**
 * A zero-width space, written as an entity so that approvers see it. GitHub finds mentions, references and links in the
 * rendered text: a backslash has no effect there, but a character between `@` and the name does.
 */
const BREAK = '&#8203;';
/** Markdown renders indented text as code. */
const INDENT = { ' ': '&nbsp;', '\t': '&nbsp;'.repeat(4) };

/** In this order: later replacements add characters that earlier ones would escape. */
const MARKUP: readonly [RegExp, string][] = [
  [/&/g, '&amp;'],
  [/</g, '&lt;'],
  [/>/g, '&gt;'],
  [/[\\`*_~[\]|$]/g, '\\$&'],
  // Only at the start of a line: lists, underlined headings, the second row of a table.
  [/^(?:[-+=]|:(?=-))/gm, '\\$&'],
  [/^(\d{1,9})([.)])/gm, '$1\\$2'],
  // References to issues, which show in their timelines and can close them (`Fixes #1`); and headings.
  [/#/g, `#${BREAK}`],
  [/(?<![a-z0-9])(gh)-(?=\d)/gi, `$1-${BREAK}`],
  // Mentions of people and teams, mail addresses, commits.
  [/@/g, `@${BREAK}`],
  // Links; a link to an issue is a reference to it.
  [/:\/\//g, `:${BREAK}//`],
  [/(www)\./gi, `$1${BREAK}.`],
];

/** Markdown that GitHub renders as exactly this text, without mentions, references and links. */
export function escapeMarkdown(text: string): string {
  const lines = text.replace(/\r\n?/g, '\n');
  return MARKUP.reduce((escaped, [pattern, replacement]) => escaped.replace(pattern, replacement), lines).replace(
    /^[ \t]+/gm,
    (indent) => [...indent].map((character) => INDENT[character as ' ' | '\t']).join(''),
  );
}
