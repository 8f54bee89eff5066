import { describe, expect, it } from 'vitest';
import { preAuthEncoding, trustedKeys } from '../../lambdas/evidence/dsse.ts';
import { verifyBundle } from '../../lambdas/evidence/verify-bundle.ts';
import { canonicalJson, hashOf } from '../../lambdas/run/canonical-json.ts';
import { genesisHash } from '../../lambdas/run/commit.ts';
import { canonical, isGenuine, type Json } from './second-verifier.ts';
import vectors from './vectors/vectors.json' with { type: 'json' };

const { document, envelope, publicKey } = vectors;

const verdictOn = (held: { document: string; envelope: string }) =>
  verifyBundle({
    document: Buffer.from(held.document),
    envelope: Buffer.from(held.envelope),
    keys: trustedKeys(publicKey),
  });

describe('the test vectors of the format', () => {
  it.each(vectors.canonical)('give the canonical form $text', ({ value, text, sha256 }) => {
    expect([canonicalJson(value), hashOf(value)]).toEqual([text, sha256]);
    expect(canonical(value as Json)).toBe(text);
  });

  it('give the beginning of a chain, the hash of a commit and what DSSE signs', () => {
    const { genesis, commit } = vectors;
    expect(genesisHash(genesis.tenant, genesis.runId)).toBe(genesis.hash);
    const { hash, ...content } = commit;
    expect(hashOf(content)).toBe(hash);
    const { payloadType, payload, encoded } = vectors.preAuthEncoding;
    expect(preAuthEncoding(payloadType, Buffer.from(payload)).toString()).toBe(encoded);
  });

  it.each([
    ['one in which everything happened', { document, envelope }],
    ['a short one', vectors.short],
  ])('are valid to both verifiers, %s: what an earlier version of the runtime sealed stays so', (_which, held) => {
    expect(verdictOn(held)).toMatchObject({ verdict: 'valid' });
    expect(isGenuine(held.document, held.envelope, publicKey)).toBe(true);
  });

  it.each(vectors.tampered)('are tampered with, to both, when $what', ({ in: file, from, to, entry }) => {
    const held = { document, envelope };
    const tampered = { ...held, [file]: held[file as keyof typeof held].replace(from, to) };
    expect(tampered).not.toEqual(held);
    expect(isGenuine(tampered.document, tampered.envelope, publicKey)).toBe(false);
    expect(verdictOn(tampered)).toMatchObject({
      verdict: 'tampered',
      flaw: { entry: expect.stringMatching(new RegExp(`^${entry}( |$)`)) },
    });
  });
});
