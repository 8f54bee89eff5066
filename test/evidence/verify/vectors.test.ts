import { describe, expect, it } from 'vitest';
import { preAuthEncoding } from '../../../lambdas/evidence/signing/dsse.ts';
import { trustedKeys } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import { readLog } from '../../../lambdas/evidence/verify/verify-daily-log.ts';
import { canonicalJson, hashOf } from '../../../lambdas/run/canonical-json.ts';
import { genesisHash } from '../../../lambdas/run/commit.ts';
import addendaVectors from '../vectors/addenda.json' with { type: 'json' };
import { type Operation, patched } from '../vectors/patched.ts';
import vectors from '../vectors/vectors.json' with { type: 'json' };
import { areGenuineAddenda, canonical, isGenuine, isGenuineLog, type Json, sha256 } from './second-verifier.ts';

const { document, envelope, publicKey } = vectors;

interface Held {
  document: string;
  envelope: string;
}

const verdictOn = (held: Held, key = publicKey) =>
  verifyBundle({
    document: Buffer.from(held.document),
    envelope: Buffer.from(held.envelope),
    keys: trustedKeys(key),
  });

/** The verdicts of both verifiers on a log. */
function logVerdicts(held: Held): [problem: string | undefined, isGenuine: boolean] {
  const files = { document: Buffer.from(held.document), envelope: Buffer.from(held.envelope) };
  const read = readLog({ tenant: 'acme', name: '2026-03-02', ...files }, trustedKeys(publicKey));
  return ['problem' in read ? read.problem : undefined, isGenuineLog(held.document, held.envelope, publicKey)];
}

describe('the test vectors of the format', () => {
  it.each(vectors.canonical)('give the canonical form $text', ({ value, text, sha256 }) => {
    expect([canonicalJson(value), hashOf(value)]).toEqual([text, sha256]);
    expect(canonical(value as Json)).toBe(text);
  });

  it('have the genesis hash of a chain, the hash of a commit and the text that DSSE signs', () => {
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
  ])('are valid for both verifiers: %s, also if an earlier version of the runtime sealed it', (_which, held) => {
    expect(verdictOn(held)).toMatchObject({ verdict: 'valid' });
    expect(isGenuine(held.document, held.envelope, publicKey)).toBe(true);
  });

  it.each(vectors.tampered)('are tampered with for both verifiers: $what', ({ in: file, from, to, entry }) => {
    const held = { document, envelope };
    const tampered = { ...held, [file]: held[file as keyof typeof held].replace(from, to) };
    expect(tampered).not.toEqual(held);
    expect(isGenuine(tampered.document, tampered.envelope, publicKey)).toBe(false);
    expect(verdictOn(tampered)).toMatchObject({
      verdict: 'tampered',
      entry: expect.stringMatching(new RegExp(`^${entry}( |$)`)),
    });
  });

  it.each(vectors.resigned)('are $verdict for both verifiers despite a signature of the right key: $what', (vector) => {
    const { patch, keepsIndex, write: [from = '', to = ''] = [], envelope: resigned, verdict, entry } = vector;
    const text = canonical(patched(document, patch as Operation[], keepsIndex)).replace(from, to);
    // The document is the signed one, so only its content shows the problem.
    expect(String(Buffer.from(JSON.parse(resigned).payload, 'base64'))).toContain(sha256(text));
    expect(isGenuine(text, resigned, publicKey)).toBe(false);
    expect(verdictOn({ document: text, envelope: resigned })).toMatchObject(
      entry === undefined ? { verdict } : { verdict, entry: expect.stringMatching(new RegExp(`^${entry}( |$)`)) },
    );
  });

  it('have an invalid bundle for every step of the verification besides the signature', () => {
    expect([...new Set(vectors.resigned.map(({ step }) => step))]).toEqual([1, 3, 4, 5, 6, 7, 8, 9]);
  });

  it('are valid for both verifiers with a signature of ECDSA P-256, and not with another signature', () => {
    const { p256 } = vectors;
    const held = { document, envelope: p256.envelope };
    expect(verdictOn(held, p256.publicKey)).toMatchObject({
      verdict: 'valid',
      signedBy: { algorithm: 'ECDSA P-256 with SHA-256' },
    });
    expect(isGenuine(document, p256.envelope, p256.publicKey)).toBe(true);
    const read = JSON.parse(p256.envelope);
    const bytes = Buffer.from(read.signatures[0].sig, 'base64');
    read.signatures[0].sig = Buffer.concat([bytes.subarray(0, -1), Buffer.from([~(bytes.at(-1) ?? 0) & 255])]).toString(
      'base64',
    );
    const forged = canonical(read);
    expect(verdictOn({ document, envelope: forged }, p256.publicKey)).toMatchObject({ entry: 'signature' });
    expect(isGenuine(document, forged, p256.publicKey)).toBe(false);
    expect(isGenuine(document, p256.envelope, publicKey)).toBe(false);
  });
});

describe('the test vectors of addenda', () => {
  interface WithAddenda extends Held {
    addenda: Held[];
  }

  /** The verdicts of both verifiers on a bundle with its addenda. */
  function verdicts({ document, envelope, addenda }: WithAddenda): [verdict: string, isGenuine: boolean] {
    const verdict = verifyBundle({
      document: Buffer.from(document),
      envelope: Buffer.from(envelope),
      keys: trustedKeys(addendaVectors.publicKey),
      addenda: addenda.map((each, index) => ({
        name: `file ${index + 1}`,
        document: Buffer.from(each.document),
        envelope: Buffer.from(each.envelope),
      })),
    });
    const key = addendaVectors.publicKey;
    return [verdict.verdict, isGenuine(document, envelope, key) && areGenuineAddenda(document, addenda, key)];
  }

  const { resolved, rolledBack, rollback, tampered } = addendaVectors;

  it.each([
    ['a resolved run', resolved, 2],
    ['a run that was rolled back after its end', rolledBack, 1],
    ['the run that did so', rollback, 0],
  ])('are valid for both verifiers: %s', (_which, held, count) => {
    expect(held.addenda).toHaveLength(count);
    expect(verdicts(held)).toEqual(['valid', true]);
  });

  it.each(tampered)('are tampered with for both verifiers: $what', ({ in: file, from, to }) => {
    const [first, second] = resolved.addenda as [Held, Held];
    const edited = { ...second, [file]: second[file as keyof Held].replace(from, to) };
    expect(edited).not.toEqual(second);
    expect(verdicts({ ...resolved, addenda: [first, edited] })).toEqual(['tampered', false]);
  });

  it('are tampered with for both verifiers: one is missing, duplicated or of another run', () => {
    const [first, second] = resolved.addenda as [Held, Held];
    expect(verdicts({ ...resolved, addenda: [second] })).toEqual(['tampered', false]);
    expect(verdicts({ ...resolved, addenda: [first, first, second] })).toEqual(['tampered', false]);
    expect(verdicts({ ...rolledBack, addenda: [first] })).toEqual(['tampered', false]);
  });
});

describe('the test vectors of the log', () => {
  const { log } = vectors;

  it('are valid for both verifiers, by root and signature', () => {
    expect(logVerdicts(log)).toEqual([undefined, true]);
  });

  it.each(log.tampered)('are invalid for both verifiers: $what', ({ in: file, from, to }) => {
    const tampered = { ...log, [file]: log[file as 'document' | 'envelope'].replace(from, to) };
    expect(tampered).not.toEqual(log);
    expect(logVerdicts(tampered)).toEqual([expect.any(String), false]);
  });

  it.each(log.resigned)('are invalid for both verifiers despite a signature of the right key: $what', (resigned) => {
    expect(logVerdicts(resigned)).toEqual([expect.stringMatching(/^its log was edited/), false]);
  });
});
