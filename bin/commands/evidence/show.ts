import { printable, type Terminal } from '../../terminal/terminal.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { withShortIds } from '../runs/run-text.ts';
import { FILE_DETAILS, KEY_OPTION, readEvidence } from './bundle-file.ts';
import { layOut } from './evidence-layout.ts';
import { type EvidenceInWords, evidenceInWords } from './evidence-text.ts';

export const evidenceShow: Command = {
  name: 'evidence show',
  takes: ['FILE'],
  says: 'a bundle in words: what was decided, written and undone',
  details: `${FILE_DETAILS}\nA bundle that was tampered with is not shown; evidence verify says what is wrong with it.`,
  options: { key: KEY_OPTION },
  async run(call) {
    const evidence = readEvidence(call);
    if (call.json) {
      call.printJson(evidence.document);
      return EXIT.ok;
    }
    print(printable(evidenceInWords(evidence)), call.terminal);
    return EXIT.ok;
  },
};

function print({ heading, facts, sections }: EvidenceInWords, terminal: Terminal): void {
  terminal.print(terminal.paint('strong', heading));
  const nameColumns = Math.max(...facts.map(([name]) => name.length));
  for (const line of layOut(facts, terminal.columns).flat()) {
    terminal.print(terminal.paint('quiet', line.slice(0, nameColumns)) + line.slice(nameColumns));
  }
  for (const { title, columns, rows } of sections) {
    terminal.print(`\n${terminal.paint('strong', title.toUpperCase())}`);
    const titles = columns.map((column) => column.toUpperCase());
    const [head = [], ...lines] = layOut([titles, ...rows.map((row) => row.map(shownOn(terminal)))], terminal.columns);
    for (const line of head) terminal.print(terminal.paint('quiet', line));
    for (const line of lines.flat()) terminal.print(line);
  }
}

const shownOn =
  ({ isInteractive }: Terminal) =>
  (cell: string | string[]) => {
    if (!isInteractive) return cell;
    return typeof cell === 'string' ? withShortIds(cell) : cell.map(withShortIds);
  };
