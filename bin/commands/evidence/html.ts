import { printable } from '../../terminal/terminal.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { FILE_DETAILS, KEY_OPTION, readEvidence, writeOrFail } from './bundle-file.ts';
import { evidenceInWords } from './evidence-text.ts';
import { evidencePage } from './html-page.ts';

export const evidenceHtml: Command = {
  name: 'evidence html',
  takes: ['FILE'],
  says: 'a bundle as one page to read, print and file',
  details: `${FILE_DETAILS}\nThe page needs nothing but itself: no scripts, no fonts, no images.`,
  options: { key: KEY_OPTION, out: { value: 'FILE', says: 'where to write it; without it, to the terminal' } },
  async run(call) {
    const evidence = readEvidence(call);
    const page = evidencePage(printable(evidenceInWords(evidence)), evidence.verdict.verdict === 'valid');
    const out = call.text('out');
    if (out === undefined) call.terminal.print(page);
    else writeOrFail(out, page);
    return EXIT.ok;
  },
};
