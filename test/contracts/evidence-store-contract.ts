import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EvidenceStore } from '../../lambdas/evidence/evidence-store.ts';

export function describeEvidenceStoreContract(
  name: string,
  open: () => Promise<{ store: EvidenceStore; close(): Promise<void> }>,
): void {
  describe(`${name} as the evidence store`, () => {
    let store: EvidenceStore;
    let close: () => Promise<void>;
    beforeEach(async () => {
      ({ store, close } = await open());
    });
    afterEach(() => close());
    const first = Buffer.from('{"first":"ä €"}');
    const second = Buffer.from('{"second":true}');
    const key = 'evidence/acme/run_1/bundle.json';

    it('stores content unchanged', async () => {
      expect(await store.putOnce(key, first, 'application/json')).toBe(true);
      expect(await store.get(key)).toEqual(first);
    });

    it('does not replace an object, and reports that the second was not written', async () => {
      await store.putOnce(key, first, 'application/json');
      expect(await store.putOnce(key, second, 'application/json')).toBe(false);
      expect(await store.get(key)).toEqual(first);
    });

    it('accepts one of several concurrent writers of a key', async () => {
      const contents = Array.from({ length: 5 }, (_, index) => Buffer.from(`writer ${index}`));
      const wrote = await Promise.all(contents.map((content) => store.putOnce(key, content, 'text/plain')));
      expect(wrote.filter(Boolean)).toHaveLength(1);
      expect(await store.get(key)).toEqual(contents[wrote.indexOf(true)]);
    });

    it('stores each key separately', async () => {
      await store.putOnce(key, first, 'application/json');
      expect(await store.putOnce(`${key}.other`, second, 'application/json')).toBe(true);
      expect(await store.get(`${key}.other`)).toEqual(second);
    });

    it('returns nothing for an unknown key', async () => {
      await expect(store.get('evidence/acme/run_2/bundle.json')).rejects.toThrow();
    });
  });
}
