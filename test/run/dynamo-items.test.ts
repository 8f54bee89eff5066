import { brotliCompressSync, constants } from 'node:zlib';
import { expect, it } from 'vitest';
import { docOf, itemBytes, ROW_MAX_BYTES, toItem } from '../../lambdas/run/dynamo/dynamo-items.ts';
import { isPackedWithDictionary } from '../../lambdas/run/dynamo/row-dictionary.ts';
import { noise } from '../fakes/noise.ts';

const KEY = { pk: 'RUN#acme#run_1', sk: 'STEP#0001' };
const KEY_ITEM = { pk: { S: KEY.pk }, sk: { S: KEY.sk } };

it('a small document is text that people can read', () => {
  const doc = { status: 'running', input: { text: 'שלום' } };
  expect(toItem(KEY, doc)).toMatchObject({ doc: { S: JSON.stringify(doc) }, status: { S: 'running' } });
});

it('a large document is compressed, and what conditions need stays beside it', () => {
  const doc = { status: 'running', leaseVersion: 3, input: Array.from({ length: 500 }, () => 'the same again') };
  const item = toItem(KEY, doc);
  expect(item).toMatchObject({
    doc: { B: expect.any(Uint8Array) },
    status: { S: 'running' },
    leaseVersion: { N: '3' },
  });
  expect(itemBytes(item)).toBeLessThan(400);
  expect(docOf(item)).toEqual(doc);
});

it('a document that would exceed one write unit as text is stored within one', () => {
  const rows = (letters: number) =>
    toItem(KEY, { status: 'succeeded', output: 'a text of a receipt '.repeat(letters / 20) });
  expect(rows(900).doc?.S).toBeDefined();
  expect(itemBytes(rows(900))).toBeLessThanOrEqual(1024);
  for (const letters of [1_000, 4_000]) {
    expect(rows(letters).doc?.B).toBeDefined();
    expect(itemBytes(rows(letters))).toBeLessThanOrEqual(1024);
  }
});

it('a larger document that an earlier version stored as text, or compressed without the dictionary, is read', () => {
  const doc = { text: noise('letters', 3_000) };
  expect(docOf({ ...toItem(KEY, {}), doc: { S: JSON.stringify(doc) } })).toEqual(doc);
  expect(docOf({ ...toItem(KEY, {}), doc: { B: brotliCompressSync(JSON.stringify(doc)) } })).toEqual(doc);
});

/** With each dictionary. If this fails, rows of deployed stages cannot be read any more. */
const STORED = ['EQCD5lJjbHkRV6oGp10lvCkafxMFI7kiOSiNQqBUCwA=', 'EQGD9sCNsPWzMSo99JhGKnXSKAREl1oYgV0bWwsA'];

it.each(STORED)('a row that was stored with a dictionary stays readable', (stored) => {
  const doc = docOf<object>({ ...toItem(KEY, {}), doc: { B: Buffer.from(stored, 'base64') } });
  expect(doc).toMatchObject({ events: [{ type: 'policy.decided', verdict: 'allow' }], hash: 'f'.repeat(64) });
});

it('no brotli stream is taken for a row with the dictionary', () => {
  for (const length of [0, 1, 100, 5_000, 100_000]) {
    for (const quality of [0, 2, 5, 11]) {
      const params = { [constants.BROTLI_PARAM_QUALITY]: quality };
      expect(isPackedWithDictionary(brotliCompressSync(noise('any', length), { params }))).toBe(false);
    }
  }
});

it('a row of an unknown dictionary names what to do', () => {
  expect(() => docOf({ ...KEY_ITEM, doc: { B: Buffer.from([0x11, 9, 1]) } })).toThrow('deploy that version');
});

it('a repeated text adds almost nothing to a compressed row', () => {
  const text = noise('a field', 250_000);
  const once = itemBytes(toItem(KEY, { text }));
  expect(itemBytes(toItem(KEY, { text, again: text, andAgain: text }))).toBeLessThan(once + 1024);
});

it.each([4_000, 5_000, 300_000])('a document of %i letters is read unchanged', (letters) => {
  const doc = { text: noise('letters', letters), odd: ['\ud800', '\u0000', '😀', 2 ** 53, null] };
  expect(docOf(toItem(KEY, doc))).toEqual(doc);
});

it('the error for a row that is too large names the row and the limit', () => {
  const text = noise('too much', 2 * ROW_MAX_BYTES);
  expect(() => toItem(KEY, { text })).toThrow(/the row STEP#0001 is \d+ KB; the limit is 400 KB/);
});
