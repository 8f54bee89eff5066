import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { writeFile } from '../read-file.ts';
import { findRunId } from '../runs/find-run.ts';
import { bundleFiles } from './bundle-file.ts';

export const evidenceGet: Command = {
  name: 'evidence get',
  args: ['ID'],
  description: 'download the evidence bundle of an ended run',
  details: 'Writes two files: the document (.json) and its signed envelope (.dsse.json). ID may be a prefix.',
  options: { out: { value: 'FILE', description: 'file name of the document (default: <run id>.json)' } },
  async run(call) {
    const api = call.api();
    const runId = await findRunId(api, call.arg(0));
    const files = bundleFiles(call.option('out') ?? `${runId}.json`);
    const params = { id: runId };
    const [document, envelope] = await Promise.all([
      api.download('GET /api/v1/runs/{id}/evidence/bundle.json', { params }),
      api.download('GET /api/v1/runs/{id}/evidence/bundle.dsse.json', { params }),
    ]);
    writeFile(files.document, document);
    writeFile(files.envelope, envelope);
    if (call.json) call.printJson(files);
    else call.terminal.print(`${files.document}, ${files.envelope}`);
    return EXIT.ok;
  },
};
