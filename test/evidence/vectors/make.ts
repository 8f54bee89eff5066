/** Writes vectors.json: `node test/evidence/vectors/make.ts`. Only needed for a new version of the format: the file has format 1. */
import { generateKeyPairSync, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleClaim } from '../../../lambdas/evidence/bundle/bundle-claim.ts';
import { buildDayLog, type DayLog, documentOf, logClaim } from '../../../lambdas/evidence/daily-log/daily-log.ts';
import { preAuthEncoding, signClaim } from '../../../lambdas/evidence/signing/dsse.ts';
import { canonicalJson, sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { genesisHash } from '../../../lambdas/run/commit.ts';
import { LABEL } from '../../worker/workflows.ts';
import { Workshop } from '../../worker/workshop.ts';
import { parsedDocument, SIGNER, sealedBundle } from '../bundle/sealed-bundle.ts';
import { resignedVectors } from './resigned.ts';

const values = [
  { b: 2, a: [1, 'é€😀', null, true] },
  { numbers: [0, -0, 1e21, 0.0048, 1e-7, 9007199254740991] },
  { '\u20ac': 1, '\r': 2, '1': 3, '\ud83d\ude00': 4, '\ufb33': 5 },
  'a "quoted" \\ text\n\u0001\u007f',
];

const bundle = await sealedBundle();
const { run, commits, index } = parsedDocument(bundle);
const head = commits.at(-1)?.hash ?? '';

/** 64 bytes leave four bits of the last character unused: they can be set without changing the signature. */
const [signatureEnd = ''] = /.==(?="\})/.exec(bundle.envelope.toString()) ?? [];
const loose = (end: string) => `${String.fromCharCode(end.charCodeAt(0) + 1)}==`;

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
  {
    what: 'there is a second signature',
    in: 'envelope',
    from: '}]}',
    to: '},{"keyid":"x","sig":""}]}',
    entry: 'envelope',
  },
  { what: 'the payload has another type', in: 'envelope', from: 'vnd.in-toto+json', to: 'json', entry: 'envelope' },
  {
    what: 'spare bits of base64 are set',
    in: 'envelope',
    from: signatureEnd,
    to: loose(signatureEnd),
    entry: 'envelope',
  },
  { what: 'the signature is another', in: 'envelope', from: '"sig":"', to: '"sig":"AAAA', entry: 'signature' },
];

/** The same, of a log; the days before and after it do not matter here. */
const LOG_TAMPERED = [
  { what: 'an entry is edited', in: 'document', from: '"runId":"run_b"', to: '"runId":"run_x"' },
  { what: 'an entry has another hash', in: 'document', from: sha256Hex('b'), to: sha256Hex('x') },
  { what: 'the size is another', in: 'document', from: '"size":3', to: '"size":2' },
  { what: 'the day before is another', in: 'document', from: sha256Hex('yesterday'), to: sha256Hex('x') },
  { what: 'white space is added', in: 'document', from: '{', to: '{ ' },
  { what: 'the key id is edited', in: 'envelope', from: '"keyid":"test-key/', to: '"keyid":"x' },
];

/** The bundle of a run with a single write, as the engine seals it. */
async function shortBundle() {
  const shop = new Workshop();
  globalThis.fetch = shop.outside.fetch;
  const { run: ended } = await shop.finish(await shop.begin(LABEL));
  const file = (name: string) => String(shop.evidence.file(ended.runId, name));
  return { document: file('bundle.json'), envelope: file('bundle.dsse.json') };
}

/** The same document, signed by a key of the other kind; such signatures differ each time. */
async function p256() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const signer = {
    keyId: 'test-key/p256',
    sign: async (message: Buffer) => ({ keyId: 'test-key/p256', signature: sign('sha256', message, privateKey) }),
  };
  const envelope = await signClaim(bundleClaim(bundle.document), signer);
  return { publicKey: String(publicKey.export({ type: 'spki', format: 'pem' })), envelope: envelope.toString() };
}

/** The log of a day, and logs that the right key signed although they are wrong. */
async function logVectors() {
  const entry = (name: string) => ({
    ...{ runId: `run_${name}`, sha256: sha256Hex(name), head: sha256Hex(`head of ${name}`), count: 7 },
    sealedAt: '2026-03-02T10:00:00.000Z',
  });
  const previous = { day: '2026-03-01', sha256: sha256Hex('yesterday') };
  const log = buildDayLog({ tenant: 'acme', day: '2026-03-02', previous, entries: ['a', 'b', 'c'].map(entry) });
  const signed = async (changed: DayLog) => {
    const document = documentOf(changed);
    const envelope = await signClaim(logClaim(changed, sha256Hex(document)), SIGNER);
    return { document: document.toString(), envelope: envelope.toString() };
  };
  return {
    ...(await signed(log)),
    tampered: LOG_TAMPERED,
    resigned: [
      { what: 'its root is of other entries', ...(await signed({ ...log, entries: log.entries.slice(1), size: 2 })) },
      { what: 'its root is made up', ...(await signed({ ...log, root: sha256Hex('made up') })) },
      { what: 'its size is another', ...(await signed({ ...log, size: 2 })) },
      { what: 'its entries are out of order', ...(await signed({ ...log, entries: log.entries.toReversed() })) },
    ],
  };
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
  resigned: await resignedVectors(bundle.document.toString()),
  p256: await p256(),
  log: await logVectors(),
};
writeFileSync(join(import.meta.dirname, 'vectors.json'), `${JSON.stringify(vectors, null, 2)}\n`);
