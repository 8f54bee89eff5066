import type { ResponseFrom } from '../../../client/api-client.ts';
import type { Api } from '../../client/api-client.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { writeFile } from '../read-file.ts';
import { findRunId } from '../runs/find-run.ts';
import { addendumFiles, bundleFiles, textsFolder, valuesFile } from './bundle-names.ts';
import { getTexts } from './get-texts.ts';

const OWNER_ONLY = 0o600;

export const evidenceGet: Command = {
  name: 'evidence get',
  args: ['ID'],
  description: 'download the evidence bundle of an ended run',
  details: [
    'Writes the document (.json) and its signed envelope (.dsse.json), and both for each addendum: what was recorded',
    'after the end of the run. ID may be a prefix.',
  ].join('\n'),
  options: {
    out: { value: 'FILE', description: 'file name of the document (default: <run id>.json)' },
    values: { description: 'also download the values behind the digests (.values.json), for evidence open' },
    texts: {
      description: 'also download its policy sets and workflow (folder .texts), for evidence verify --with-texts',
    },
  },
  async run(call) {
    const api = call.api();
    const runId = await findRunId(api, call.arg(0));
    const files = bundleFiles(call.option('out') ?? `${runId}.json`);
    const get = (file: 'bundle.json' | 'bundle.dsse.json' | 'values.json') =>
      api.download('GET /api/v1/runs/{id}/evidence/{file}', { params: { id: runId, file } });
    const [document, envelope] = await Promise.all([get('bundle.json'), get('bundle.dsse.json')]);
    writeFile(files.document, document);
    writeFile(files.envelope, envelope);
    const addenda = await getAddenda(api, runId, files.document);
    const values = call.isSet('values') ? valuesFile(files.document) : undefined;
    if (values !== undefined) {
      // They contain what people and systems wrote, so only this user may read the file.
      writeFile(values, await get('values.json'), { mode: OWNER_ONLY });
    }
    const texts = call.isSet('texts') ? await getTexts(api, document, textsFolder(files.document)) : undefined;
    const extras = { ...(values !== undefined && { values }), ...(texts && { texts }) };
    if (call.json) call.printJson({ ...files, addenda, ...extras });
    else {
      for (const each of [files, ...addenda]) call.terminal.print(`${each.document}, ${each.envelope}`);
      if (values !== undefined) call.terminal.print(values);
      for (const file of texts?.files ?? []) call.terminal.print(file);
      for (const hash of texts?.missing ?? []) call.terminal.note(`the stage has no text ${hash}`);
    }
    return EXIT.ok;
  },
};

async function getAddenda(api: Api, id: string, bundle: string): Promise<{ document: string; envelope: string }[]> {
  const written: { document: string; envelope: string }[] = [];
  for (let since: number | undefined = 0; since !== undefined; ) {
    const page: ResponseFrom<'GET /api/v1/runs/{id}/evidence'> = await api.call('GET /api/v1/runs/{id}/evidence', {
      params: { id },
      query: { since: String(since) },
    });
    for (const { seq } of page.addenda) {
      const files = addendumFiles(bundle, seq);
      const get = (file: 'addendum.json' | 'addendum.dsse.json') =>
        api.download('GET /api/v1/runs/{id}/evidence/addenda/{seq}/{file}', { params: { id, seq: String(seq), file } });
      writeFile(files.document, await get('addendum.json'));
      writeFile(files.envelope, await get('addendum.dsse.json'));
      written.push(files);
    }
    since = page.moreAddendaSince;
  }
  return written;
}
