import { withShortIds } from '../../terminal/page.ts';
import { alignedLines, table } from '../../terminal/table.ts';
import { printable, type Terminal } from '../../terminal/terminal.ts';
import type { Call } from '../command.ts';
import { EXIT, type ExitCode } from '../failure.ts';
import { readEvidence } from './bundle-file.ts';
import { type EvidenceText, evidenceText } from './evidence-text.ts';

export function showEvidence(call: Call): ExitCode {
  const evidence = readEvidence(call);
  if (call.json) {
    call.printJson(evidence.document);
    return EXIT.ok;
  }
  print(printable(evidenceText(evidence)), call.terminal);
  return EXIT.ok;
}

function print({ heading, facts, sections }: EvidenceText, terminal: Terminal): void {
  terminal.print(terminal.paint('strong', heading));
  const factRows = facts.map(([name, value]) => [{ text: name, tone: 'quiet' } as const, value]);
  for (const line of alignedLines([{}, { shrink: 'wrap' }], factRows, terminal)) terminal.print(line);
  for (const { title, columns, rows, hasWholeIds } of sections) {
    terminal.print(`\n${terminal.paint('strong', title.toUpperCase())}`);
    const wrapped = columns.map((column) => ({ title: column.toUpperCase(), shrink: 'wrap' }) as const);
    const shown = terminal.isInteractive && !hasWholeIds ? rows.map((row) => row.map(shortIds)) : rows;
    for (const line of table(wrapped, shown, terminal)) terminal.print(line);
  }
}

const shortIds = (cell: string | string[]) => (typeof cell === 'string' ? withShortIds(cell) : cell.map(withShortIds));
