/** Writes vectors.json anew: `node test/evidence/vectors/make.ts`. Only a new version of the format is a reason to. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { preAuthEncoding } from '../../../lambdas/evidence/dsse.ts';
import { canonicalJson, sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { genesisHash } from '../../../lambdas/run/commit.ts';
import { LABEL } from '../../worker/workflows.ts';
import { Workshop } from '../../worker/workshop.ts';
import { parsedDocument, SIGNER, sealedBundle } from '../sealed-bundle.ts';

const values = [
  { b: 2, a: [1, 'é€😀', null, true] },
  { numbers: [0, -0, 1e21, 0.0048, 1e-7, 9007199254740991] },
  { '\u20ac': 1, '\r': 2, '1': 3, '\ud83d\ude00': 4, '\ufb33': 5 },
  'a "quoted" \\ text\n\u0001\u007f',
];

const bundle = await sealedBundle();
const { run, commits, index } = parsedDocument(bundle);
const head = commits.at(-1)?.hash ?? '';

/** One edit each, of one of the two files: what is replaced, and the entry that a verifier has to name. */
const TAMPERED = [
  { what: 'a commit is edited', in: 'document', from: '["ben","cleo"]', to: '["ben","mallory"]', entry: 'commit 6' },
  { what: 'a vote is edited', in: 'document', from: '"person":"cleo"', to: '"person":"mallory"', entry: 'approval 1' },
  { what: 'a receipt is edited', in: 'document', from: '"status":200}', to: '"status":201}', entry: 'receipt 1' },
  { what: 'the run is edited', in: 'document', from: '"writes":4', to: '"writes":3', entry: 'run' },
  { what: 'the index is edited', in: 'document', from: index.run, to: '0'.repeat(64), entry: 'index' },
  {
    what: 'the head is edited',
    in: 'document',
    from: `"head":{"count":10,"hash":"${head}"`,
    to: `"head":{"count":9,"hash":"${head}"`,
    entry: 'head',
  },
  { what: 'white space is added', in: 'document', from: '{', to: '{ ', entry: 'document' },
  {
    what: 'the key id is edited',
    in: 'envelope',
    from: '"keyid":"test-key/evidence"',
    to: '"keyid":"test-key/other"',
    entry: 'envelope',
  },
];

/** What the engine itself seals of a run with a single write. */
async function shortBundle() {
  const shop = new Workshop();
  globalThis.fetch = shop.outside.fetch;
  const { run: ended } = await shop.finish(await shop.begin(LABEL));
  const file = async (name: string) => String(await shop.evidence.get(`evidence/acme/${ended.runId}/${name}`));
  return { document: await file('bundle.json'), envelope: await file('bundle.dsse.json') };
}

const vectors = {
  canonical: values.map((value) => ({ value, text: canonicalJson(value), sha256: sha256Hex(canonicalJson(value)) })),
  genesis: { tenant: run.tenant, runId: run.runId, hash: genesisHash(run.tenant, run.runId) },
  commit: commits[8],
  preAuthEncoding: {
    payloadType: 'http://example.com/HelloWorld',
    payload: 'hello world',
    encoded: preAuthEncoding('http://example.com/HelloWorld', Buffer.from('hello world')).toString(),
  },
  publicKey: String(SIGNER.publicKey.export({ type: 'spki', format: 'pem' })),
  document: bundle.document.toString(),
  envelope: bundle.envelope.toString(),
  short: await shortBundle(),
  tampered: TAMPERED,
};
writeFileSync(join(import.meta.dirname, 'vectors.json'), `${JSON.stringify(vectors, null, 2)}\n`);
