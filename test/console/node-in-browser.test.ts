import { createHash, createPublicKey, createSign, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BrowserBuffer } from '../../console/evidence/node-in-browser/buffer.ts';
import * as browser from '../../console/evidence/node-in-browser/crypto.ts';
import { isDer } from '../../console/evidence/node-in-browser/ecdsa-signature.ts';
import { anyCharacter } from '../fakes/any-character.ts';

const RUNS = { numRuns: 60 };
const bytes = fc.uint8Array({ maxLength: 300 });

describe('what the verifier uses of Node.js gives the same results in browsers', () => {
  it('hashes of bytes of every length around the blocks, and of text', () => {
    for (const length of [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 128, 1_000, 70_000]) {
      const data = new Uint8Array(length).fill(length % 251);
      expect(browser.createHash('sha256').update(data).digest('hex')).toBe(
        createHash('sha256').update(data).digest('hex'),
      );
    }
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), bytes, (text, data) => {
        const ours = browser.createHash('sha256').update(text).update(data).digest('hex');
        expect(ours).toBe(createHash('sha256').update(text).update(data).digest('hex'));
      }),
      RUNS,
    );
  });

  it('bytes as text, base64 and hex, and back', () => {
    fc.assert(
      fc.property(bytes, fc.string({ unit: anyCharacter }), (data, text) => {
        const [ours, nodes] = [BrowserBuffer.from(data), Buffer.from(data)];
        for (const encoding of ['base64', 'hex', 'utf8'] as const) {
          expect(ours.toString(encoding)).toBe(nodes.toString(encoding));
        }
        expect([...BrowserBuffer.from(ours.toString('base64'), 'base64')]).toEqual([...data]);
        expect([...BrowserBuffer.from(text)]).toEqual([...Buffer.from(text)]);
        expect(BrowserBuffer.byteLength(text)).toBe(Buffer.byteLength(text));
        expect(
          BrowserBuffer.concat([ours, BrowserBuffer.from(text)]).equals(Buffer.concat([data, Buffer.from(text)])),
        ).toBe(true);
      }),
      RUNS,
    );
    expect(BrowserBuffer.from('ab').equals(BrowserBuffer.from('ac'))).toBe(false);
    expect(BrowserBuffer.from('not base64!', 'base64')).toHaveLength(0);
  });
});

const KEYS: Record<string, { privateKey: KeyObject; publicKey: KeyObject }> = {
  Ed25519: generateKeyPairSync('ed25519'),
  'ECDSA P-256': generateKeyPairSync('ec', { namedCurve: 'P-256' }),
};
const pem = (key: KeyObject) => key.export({ type: 'spki', format: 'pem' }).toString();
const signed = (key: KeyObject, data: Uint8Array) =>
  key.asymmetricKeyType === 'ed25519' ? sign(null, data, key) : createSign('sha256').update(data).sign(key);

describe.each(Object.entries(KEYS))('%s', (_name, { privateKey, publicKey }) => {
  const key = browser.createPublicKey(pem(publicKey));
  const data = Buffer.from('what was signed');

  it('has the type and the bytes that Node.js reads', () => {
    const nodes = createPublicKey(pem(publicKey));
    expect(key.asymmetricKeyType).toBe(nodes.asymmetricKeyType);
    expect(key.export().toString('hex')).toBe(nodes.export({ type: 'spki', format: 'der' }).toString('hex'));
  });

  it('a signature is valid, and no changed signature and no changed data is', async () => {
    const signature = signed(privateKey, data);
    const other = Buffer.from(signature);
    other[other.length - 1] = (other.at(-1) ?? 0) ^ 1;
    for (const [text, bytes, expected] of [
      [data, signature, true],
      [Buffer.from('something else'), signature, false],
      [data, other, false],
      [data, Buffer.concat([signature, Buffer.from([0])]), false],
      [data, Buffer.alloc(0), false],
    ] as const) {
      await browser.checkSignature(key, text, bytes);
      expect(browser.verify(null, text, key, bytes)).toBe(expected);
    }
  });

  it('a signature that nobody checked is an error, never valid', () => {
    expect(() => browser.verify(null, Buffer.from('unchecked'), key, signed(privateKey, data))).toThrow('not checked');
  });
});

it('only the DER form of two numbers is a signature', () => {
  const { privateKey } = KEYS['ECDSA P-256'] ?? {};
  for (let round = 0; round < 40; round += 1) {
    expect(isDer(signed(privateKey as KeyObject, Buffer.from([round])))).toBe(true);
  }
  for (const hex of ['', '30', '3006020100020101', '3007020200010201 01', '300602017f0201', '30060201800201 01']) {
    expect(isDer(Buffer.from(hex.replaceAll(' ', ''), 'hex'))).toBe(false);
  }
});

it('a key of another kind is neither Ed25519 nor P-256', () => {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  expect(browser.createPublicKey(pem(publicKey)).asymmetricKeyType).toBeUndefined();
});
