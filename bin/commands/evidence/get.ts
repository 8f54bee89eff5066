import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { findRunId } from '../runs/find-run.ts';
import { bundleFiles, writeOrFail } from './bundle-file.ts';

export const evidenceGet: Command = {
  name: 'evidence get',
  takes: ['ID'],
  says: 'download the evidence bundle of a run that has ended',
  details: 'Two files: the document, and beside it its envelope (.dsse.json). A beginning of the id is enough.',
  options: { out: { value: 'FILE', says: 'name of the document (default <run id>.json)' } },
  async run(call) {
    const api = call.api();
    const runId = await findRunId(api, call.positional(0));
    const files = bundleFiles(call.text('out') ?? `${runId}.json`);
    const [document, envelope] = await Promise.all([
      api.evidenceFile(runId, 'bundle.json'),
      api.evidenceFile(runId, 'bundle.dsse.json'),
    ]);
    writeOrFail(files.document, document);
    writeOrFail(files.envelope, envelope);
    if (call.json) call.printJson(files);
    else call.terminal.print(`${files.document}, ${files.envelope}`);
    return EXIT.ok;
  },
};
