import { verify } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { buildBundle, preAuthEncoding, signBundle } from '../../lambdas/evidence/bundle.ts';
import { canonicalJson, sha256Hex } from '../../lambdas/run/canonical-json.ts';
import type { OutsideFault } from '../fakes/fake-outside.ts';
import { SeededSigner } from '../fakes/seeded-signer.ts';
import { Workshop } from '../worker/workshop.ts';
import { CANARIES, ended, TELLING, TELLING_TRIGGER } from './sealed-story.ts';

let shop: Workshop;
beforeEach(() => {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

async function bundleOf(yaml: string, ...faults: OutsideFault[]) {
  const message = await shop.begin(yaml, { trigger: TELLING_TRIGGER });
  shop.outside.next('POST github', ...faults);
  const { commits } = await shop.finish(message);
  const contents = await ended(shop, message);
  const bundle = buildBundle({ ...contents, commits });
  return { ...bundle, contents, text: bundle.document.toString(), parsed: JSON.parse(bundle.document.toString()) };
}

describe('an evidence document', () => {
  it('holds the run, its steps, receipts and every commit, and says where the chain ends', async () => {
    const { parsed, contents } = await bundleOf(TELLING);
    expect(parsed).toMatchObject({
      format: 'countersign.evidence/1',
      run: { runId: 'run_00000001', status: 'succeeded', workflow: { name: 'telling', version: 1 } },
      trigger: { source: 'github', event: 'issues.opened', sha256: expect.any(String), bytes: expect.any(Number) },
      head: { hash: contents.run.headHash, count: contents.run.seq },
    });
    expect(parsed.steps.map(({ id, status }: { id: string; status: string }) => [id, status])).toEqual([
      ['route', 'succeeded'],
      ['assign', 'succeeded'],
      ['note', 'succeeded'],
      ['label', 'succeeded'],
    ]);
    expect(parsed.receipts).toHaveLength(3);
    expect(parsed.commits).toHaveLength(contents.run.seq);
  });

  it('carries metadata only: nothing that people or systems wrote', async () => {
    const { text } = await bundleOf(TELLING);
    for (const canary of CANARIES) expect(text).not.toContain(canary);
  });

  it.each<[string, string, OutsideFault[]]>([
    ['refused', TELLING, [{ status: 422 }]],
    ['unknown to the end', TELLING, Array(5).fill({ status: 500 })],
    [
      'broken by an expression over a text',
      TELLING.replace('"CANARY-group", text', '"{% $number(trigger.title) %}", text'),
      [],
    ],
    [
      'broken by input of another shape',
      TELLING.replace('{ assignment_group: "CANARY-group" }', '"{% trigger.payload %}"'),
      [],
    ],
  ])('carries none of it either when a step was %s', async (_what, yaml, faults) => {
    const { text, parsed } = await bundleOf(yaml, ...faults);
    expect(parsed.run.status).not.toBe('succeeded');
    for (const canary of CANARIES) expect(text).not.toContain(canary);
  });

  it('is canonical, and the same whenever it is built', async () => {
    const { document, text, contents, parsed } = await bundleOf(TELLING);
    expect(canonicalJson(JSON.parse(text))).toBe(text);
    const again = buildBundle({ ...structuredClone(contents), commits: parsed.commits });
    expect(again.document.equals(document)).toBe(true);
  });

  it('is kept under the run’s own name', async () => {
    const { documentKey, envelopeKey } = await bundleOf(TELLING);
    expect([documentKey, envelopeKey]).toEqual([
      'evidence/acme/run_00000001/bundle.json',
      'evidence/acme/run_00000001/bundle.dsse.json',
    ]);
  });

  it('lets an auditor who has a payload prove that it is the one', async () => {
    const { parsed } = await bundleOf(TELLING);
    expect(parsed.trigger.sha256).toBe(sha256Hex(canonicalJson(TELLING_TRIGGER.payload)));
  });
});

describe('a signed envelope', () => {
  it('names the run and its document’s hash, and verifies with the public key alone', async () => {
    const { document, contents } = await bundleOf(TELLING);
    const signer = new SeededSigner();
    const sha256 = sha256Hex(document);
    const envelope = JSON.parse((await signBundle(contents.run, sha256, signer)).toString());
    const payload = Buffer.from(envelope.payload, 'base64');
    expect(JSON.parse(payload.toString())).toEqual({
      _type: 'https://in-toto.io/Statement/v1',
      subject: [{ name: 'acme/run_00000001', digest: { sha256 } }],
      predicateType: 'https://countersign.dev/evidence/v1',
      predicate: { head: contents.run.headHash, count: contents.run.seq, status: 'succeeded' },
    });
    const [{ keyid, sig }] = envelope.signatures;
    const signed = preAuthEncoding(envelope.payloadType, payload);
    expect(keyid).toBe(signer.keyId);
    expect(verify(null, signed, signer.publicKey, Buffer.from(sig, 'base64'))).toBe(true);
    expect(verify(null, payload, signer.publicKey, Buffer.from(sig, 'base64'))).toBe(false);
  });

  it('signs the example of the DSSE specification', () => {
    const encoded = preAuthEncoding('http://example.com/HelloWorld', Buffer.from('hello world'));
    expect(encoded.toString()).toBe('DSSEv1 29 http://example.com/HelloWorld 11 hello world');
    expect(preAuthEncoding('ä', Buffer.from('€')).toString()).toBe('DSSEv1 2 ä 3 €');
  });
});
