import { printable } from '../../terminal/terminal.ts';
import type { Call } from '../command.ts';
import { EXIT, type ExitCode } from '../failure.ts';
import { writeFile } from '../read-file.ts';
import { type ReadEvidence, readEvidence } from './bundle-file.ts';
import { type EvidenceText, evidenceText } from './evidence-text.ts';

export function evidenceHtml(call: Call): ExitCode {
  const evidence = readEvidence(call);
  const page = evidencePage(printable(evidenceText(evidence)), evidence.verdict.verdict);
  const out = call.option('out');
  if (out === undefined) call.terminal.print(page);
  else writeFile(out, page);
  return EXIT.ok;
}

const STYLE = `
  :root { color-scheme: light; }
  body { font: 14px/1.45 system-ui, sans-serif; color: #1b1f24; max-width: 70rem; margin: 2rem auto; padding: 0 1.5rem; }
  h1 { font-size: 1.35rem; margin: 0 0 .75rem; overflow-wrap: anywhere; }
  h2 { font-size: 1.05rem; margin: 2rem 0 .4rem; border-bottom: 2px solid #1b1f24; padding-bottom: .2rem; }
  .verdict { padding: .6rem .9rem; border-left: 5px solid; margin: 0 0 1.25rem; }
  .valid { border-color: #1a7f37; background: #eaf6ec; }
  .broken { border-color: #cf222e; background: #ffebe9; }
  .unproven { border-color: #9a6700; background: #fff5d6; }
  dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.25rem; margin: 0; }
  dt { color: #59636e; }
  dd { margin: 0; min-width: 0; }
  table { border-collapse: collapse; width: 100%; }
  th { text-align: left; color: #59636e; font-weight: 600; }
  th, td { padding: .28rem .9rem .28rem 0; vertical-align: top; border-bottom: 1px solid #d1d9e0; }
  .long { overflow-wrap: anywhere; }
  .time { white-space: nowrap; font-variant-numeric: tabular-nums; color: #59636e; }
  .note { color: #59636e; margin: .75rem 0 0; }
  @media print {
    body { margin: 0; max-width: none; font-size: 9pt; }
    thead { display: table-header-group; }
    tr { break-inside: avoid; }
    h2 { break-after: avoid; }
  }`;

/** All text of the bundle is escaped: it never becomes markup. */
export function evidencePage(
  { heading, facts, sections }: EvidenceText,
  verdict: ReadEvidence['verdict']['verdict'],
): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Evidence of ${escaped(heading)}</title>
<style>${STYLE}
</style>
</head>
<body>
<h1>Evidence of ${escaped(heading)}</h1>
${VERDICT_TEXT[verdict]}
<dl>
${facts.map(([name, value]) => `<dt>${escaped(name)}</dt><dd>${breakable(value)}</dd>`).join('\n')}
</dl>
<p class="note">The bundle contains no texts, inputs or outputs, only their size and SHA-256. This page shows the first digits of these hashes,
and the full SHA-256 of the document, the last commit (head), the public key, the policies and each write. This page proves nothing by itself. To check
the bundle, run: countersign evidence verify bundle.json --key key.pem</p>
${sections.map(sectionOf).join('\n')}
</body>
</html>`;
}

const VERDICT_TEXT = {
  valid: `<p class="verdict valid">When this page was created, the bundle was complete, unmodified and signed with the key below, and the
run had followed the rules.</p>`,
  rules_broken: `<p class="verdict broken">When this page was created, the bundle was complete, unmodified and signed with the key below,
but the run had broken rules.</p>`,
  unproven: `<p class="verdict unproven">When this page was created, the bundle was consistent, but its signature was not checked:
anybody could have created it.</p>`,
};

function sectionOf({ title, columns, rows }: EvidenceText['sections'][number]): string {
  const heads = columns.map((column) => `<th>${escaped(column)}</th>`);
  const cellOf = (cell: string | string[], index: number) => {
    const content = [cell].flat().map(breakable).join('<br>');
    return `<td${columns[index]?.startsWith('Time') ? ' class="time"' : ''}>${content}</td>`;
  };
  return `<h2>${escaped(title)}</h2>
<table>
<thead><tr>${heads.join('')}</tr></thead>
<tbody>
${rows.map((row) => `<tr>${row.map(cellOf).join('')}</tr>`).join('\n')}
</tbody>
</table>`;
}

/** Shorter words fit in five columns on a page. */
const LONG_WORD = /(\S{16,})/;
/** A separator, or 16 digits of a hash that has more. */
const BREAK_AFTER = /[:/.](?!$)|[0-9a-f]{16}(?=[0-9a-f])/g;

/** Long words may break, preferably after a separator. Copied text stays unchanged. */
function breakable(text: string): string {
  const parts = text.split(LONG_WORD);
  return parts.map((part) => (LONG_WORD.test(part) ? longWord(part) : escaped(part))).join('');
}

const longWord = (word: string) =>
  `<span class="long">${word.replace(BREAK_AFTER, '$&\n').split('\n').map(escaped).join('<wbr>')}</span>`;

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

const escaped = (text: string) => text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
