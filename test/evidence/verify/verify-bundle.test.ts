import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { bundleClaim } from '../../../lambdas/evidence/bundle/bundle-claim.ts';
import type { Signer } from '../../../lambdas/evidence/evidence-store.ts';
import { signClaim } from '../../../lambdas/evidence/signing/dsse.ts';
import { RULES } from '../../../lambdas/evidence/verify/rules/check-rules.ts';
import { type TrustedKey, trustedKey, trustedKeys } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import { canonicalJson } from '../../../lambdas/run/canonical-json.ts';
import { SeededSigner } from '../../fakes/seeded-signer.ts';
import { builtDocument } from '../bundle/built-bundle.ts';
import { GovernedStory } from '../bundle/governed-story.ts';
import { parsedDocument, SIGNER, sealedBundle, TRUSTED } from '../bundle/sealed-bundle.ts';
import { bundle, problemOf, rehash } from './tampering.ts';

describe('an unchanged bundle', () => {
  it('is valid, and its summary says what it is and who signed it', () => {
    expect(verifyBundle(bundle)).toEqual({
      verdict: 'valid',
      intact: true,
      rules: {
        checked: RULES.filter(({ number }) => number < 21).map(({ number, name }) => ({ rule: number, name })),
        broken: [],
        notCheckable: RULES.filter(({ number }) => number >= 21).map(({ number, name }) => ({
          ...{ rule: number, name, reason: 'an earlier version started the run' },
        })),
      },
      summary: {
        tenant: 'acme',
        runId: 'run_00000001',
        status: 'failed_terminal',
        sha256: createHash('sha256').update(bundle.document).digest('hex'),
        head: parsedDocument(bundle).commits.at(-1)?.hash,
        commits: 10,
        steps: 4,
        decisions: 6,
        approvals: 1,
        receipts: 4,
        addenda: 0,
        keyId: 'test-key/evidence',
      },
      signedBy: { algorithm: 'Ed25519', fingerprint: TRUSTED[0]?.fingerprint },
    });
  });

  it('is not valid without a key, because anybody could have made it', () => {
    expect(verifyBundle({ ...bundle, keys: [] })).toMatchObject({ verdict: 'unproven', summary: { commits: 10 } });
  });

  it('stays valid after a rotation, with the old and the new key', () => {
    const keys = [trustedKey(new SeededSigner('next').publicKey), ...TRUSTED];
    expect(verifyBundle({ ...bundle, keys })).toMatchObject({ verdict: 'valid', signedBy: { algorithm: 'Ed25519' } });
  });

  it('is also valid with ECDSA P-256, for regions without Ed25519', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const signer: Pick<Signer, 'keyId' | 'sign'> = {
      keyId: 'p256',
      sign: async (message) => ({ keyId: 'p256', signature: sign('sha256', message, privateKey) }),
    };
    const envelope = await signClaim(bundleClaim(bundle.document), signer);
    const keys = trustedKeys(String(publicKey.export({ type: 'spki', format: 'pem' })));
    expect(verifyBundle({ ...bundle, envelope, keys })).toMatchObject({
      verdict: 'valid',
      signedBy: { algorithm: 'ECDSA P-256 with SHA-256' },
    });
    expect(problemOf({ ...bundle, envelope })).toMatchObject({ entry: 'signature' });
  });

  it('shows events of unknown kinds as part of the chain', async () => {
    const document = parsedDocument(bundle);
    const last = document.commits.at(-1);
    rehash(last, { events: [...(last?.events ?? []), { type: 'run.blessed', by: 'someone' }] });
    document.head.hash = last?.hash ?? '';
    const bytes = Buffer.from(canonicalJson(document));
    const envelope = await signClaim(bundleClaim(bytes), SIGNER);
    expect(verifyBundle({ document: bytes, envelope, keys: TRUSTED })).toMatchObject({ verdict: 'valid' });
  });
});

describe('a key', () => {
  it('of another kind is refused, and the error names the supported kinds', () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
    expect(() => trustedKey(publicKey)).toThrow(/Ed25519 or ECDSA P-256/);
  });

  it('is read from a PEM file with any number of keys', () => {
    const pem = (seed: string) => String(new SeededSigner(seed).publicKey.export({ type: 'spki', format: 'pem' }));
    expect(trustedKeys(`# two keys\n${pem('a')}\n${pem('b')}`)).toHaveLength(2);
    expect(trustedKeys('no key at all')).toEqual([]);
    expect(() => trustedKeys(JSON.stringify({ keys: [{ pem: pem('a') }] }))).toThrow(/not a list of published keys/);
  });
});

describe('a key from the published list', () => {
  const published = (change: Partial<NonNullable<TrustedKey['published']>>) =>
    TRUSTED.map((each) => ({ ...each, published: { keyId: SIGNER.keyId, validUntil: null, ...change } }));

  it.each([
    ['is the one that signs', {}],
    ['was retired later', { validUntil: '2026-06-01' }],
    ['was retired on the day before: rotations take their time', { validUntil: '2026-01-01' }],
  ])('confirms what it signed if it %s', (_which, change) => {
    expect(verifyBundle({ ...bundle, keys: published(change) })).toMatchObject({ verdict: 'valid' });
  });

  it.each([
    ['was retired two days before the run ended', { validUntil: '2025-12-31' }, /retired on 2025-12-31/],
    ['is not the one that the envelope names', { keyId: 'other' }, /but other made it/],
  ])('does not if it %s', (_which, change, problem) => {
    expect(problemOf({ ...bundle, keys: published(change) })).toEqual({
      entry: 'signature',
      problem: expect.stringMatching(problem),
    });
  });
});

describe('the verifier of an envelope says that', () => {
  const edited = (change: (envelope: { payload: string; signatures: Record<string, string>[] }) => unknown) => {
    const envelope = JSON.parse(bundle.envelope.toString());
    change(envelope);
    return { ...bundle, envelope: Buffer.from(canonicalJson(envelope)) };
  };
  const restated = (from: string, to: string) =>
    edited((envelope) => {
      const payload = Buffer.from(envelope.payload, 'base64').toString();
      expect(payload).toContain(from);
      envelope.payload = Buffer.from(payload.replace(from, to)).toString('base64');
    });

  it('another key made the signature', async () => {
    const forged = await sealedBundle({}, new SeededSigner('mallory'));
    expect(problemOf(forged)).toEqual({
      entry: 'signature',
      problem: expect.stringMatching(/not made by the trusted key/),
    });
  });

  it('the signature is of another statement', () => {
    expect(problemOf(restated('"count":10', '"count":9'))).toMatchObject({ entry: 'signature' });
  });

  it('its key id was edited, although DSSE does not sign it', () => {
    const held = edited(({ signatures: [signature] }) => Object.assign(signature ?? {}, { keyid: 'test-key/other' }));
    expect(problemOf(held)).toEqual({ entry: 'envelope', problem: expect.stringMatching(/key id/) });
  });

  it('it has a second signature, or other bytes for the same one', () => {
    const twice = edited(({ signatures }) => signatures.push({ ...signatures[0] }));
    expect(problemOf(twice)).toMatchObject({ entry: 'envelope' });
    const spaced = { ...bundle, envelope: Buffer.from(bundle.envelope.toString().replace('{', '{ ')) };
    expect(problemOf(spaced)).toEqual({ entry: 'envelope', problem: expect.stringMatching(/canonical/) });
    const loose = edited(({ signatures: [signature] }) => {
      // 64 bytes leave four bits of the last character unused: they can be set without changing the signature.
      Object.assign(signature ?? {}, { sig: signature?.sig?.replace(/(.)==$/, (_all, last) => `${next(last)}==`) });
    });
    expect(problemOf(loose)).toEqual({ entry: 'envelope', problem: expect.stringMatching(/base64/) });
  });

  it('it is of another bundle', async () => {
    const { envelope } = await sealedBundle({ runId: 'run_00000002' });
    expect(problemOf({ ...bundle, envelope })).toMatchObject({ entry: 'run' });
  });

  it('it is not an evidence envelope', async () => {
    const claim = { ...bundleClaim(bundle.document), predicateType: 'https://example.com/other/v1' };
    const envelope = await signClaim(claim, SIGNER);
    expect(verifyBundle({ ...bundle, envelope })).toMatchObject({ verdict: 'unreadable' });
    expect(verifyBundle({ ...bundle, envelope: Buffer.from('not json') })).toMatchObject({ verdict: 'unreadable' });
  });
});

it('a bundle of a later format is unreadable, not tampered with', async () => {
  const document = Buffer.from(bundle.document.toString().replace('countersign.evidence/2', 'countersign.evidence/3'));
  const later = { ...bundle, document, envelope: await signClaim(bundleClaim(document), SIGNER) };
  expect(verifyBundle(later)).toEqual({
    verdict: 'unreadable',
    problem:
      'the document is countersign.evidence/3; this program reads countersign.evidence/1 and countersign.evidence/2',
  });
});

it('building a bundle does not change its input', () => {
  const { contents } = new GovernedStory();
  const before = structuredClone(contents);
  builtDocument(contents);
  expect(contents).toEqual(before);
});

/** The next character of the base64 alphabet. */
const next = (character: string) => String.fromCharCode(character.charCodeAt(0) + 1);
