import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiKey, ApiKeys, NamedKey } from '../../../lambdas/api/authorizer/api-keys.ts';
import { byTest } from '../../fakes/by-test.ts';

export function describeApiKeysContract(
  name: string,
  open: () => Promise<{ keys: ApiKeys; close(): Promise<void> }>,
): void {
  describe(`${name} as the API keys`, () => {
    let keys: ApiKeys;
    let close: () => Promise<void>;
    beforeAll(async () => {
      ({ keys, close } = await open());
    });
    afterAll(() => close());
    const owner: ApiKey = { tenant: 'acme', person: 'olivia', role: 'owner' };
    const named = (name: string, tenant = 'acme'): NamedKey => ({ ...owner, tenant, name, createdBy: 'olivia' });
    const namesOf = async (tenant: string) => (await keys.list(tenant)).map(({ key }) => key.name);

    it('finds who a key belongs to', async () => {
      await keys.save('a-key', owner, byTest());
      expect((await keys.find('a-key'))?.key).toMatchObject(owner);
    });

    it('creates a key once for each name, and lists keys by name and tenant', async () => {
      expect(await keys.create('key-b', named('b', 'listed'), byTest())).toBe(true);
      expect(await keys.create('key-a', named('a', 'listed'), byTest())).toBe(true);
      expect(await keys.create('key-c', named('b', 'listed'), byTest())).toBe(false);
      expect(await keys.create('key-d', named('b', 'other'), byTest())).toBe(true);
      expect(await keys.find('key-c')).toBeUndefined();
      expect(await namesOf('listed')).toEqual(['a', 'b']);
      expect((await keys.named('listed', 'b'))?.key).toEqual(named('b', 'listed'));
      expect(await keys.named('listed', 'c')).toBeUndefined();
    });

    it('creates one of two keys with the same name at the same time', async () => {
      const made = await Promise.all(
        ['race-1', 'race-2', 'race-3'].map((key) => keys.create(key, named('raced', 'racing'), byTest())),
      );
      expect(made.filter(Boolean)).toHaveLength(1);
      expect(await namesOf('racing')).toEqual(['raced']);
    });

    it('refuses a revoked key at once, and its use does not bring it back', async () => {
      await keys.create('gone', named('gone', 'revoking'), byTest());
      const stored = await keys.find('gone');
      if (!stored) throw new Error('no key');
      expect(await keys.revoke(stored, byTest())).toBe(true);
      expect(await keys.find('gone')).toBeUndefined();
      await keys.recordUse(stored, '2026-01-01T00:00:00.000Z');
      expect(await keys.find('gone')).toBeUndefined();
      expect(await namesOf('revoking')).toEqual([]);
      expect(await keys.revoke(stored, byTest())).toBe(false);
      expect(await keys.create('again', named('gone', 'revoking'), byTest())).toBe(true);
    });

    it('records the last use, also of a key of the first version, which is listed by its hash', async () => {
      await keys.save('first', { ...owner, tenant: 'used' }, byTest());
      const stored = await keys.find('first');
      if (!stored) throw new Error('no key');
      await keys.recordUse(stored, '2026-01-01T10:00:00.000Z');
      const [listed] = await keys.list('used');
      expect(listed).toMatchObject({ lastUsedAt: '2026-01-01T10:00:00.000Z', hash: stored.hash });
      expect(listed?.key.name).toMatch(/^unnamed-[0-9a-f]{12}$/);
    });

    it.each(['', 'a-ke', 'a-key ', 'A-KEY', '#'])('knows nobody by the key "%s"', async (wrong) => {
      await keys.save('a-key', owner, byTest());
      expect(await keys.find(wrong)).toBeUndefined();
    });

    it('gives a key saved again to the newer caller', async () => {
      await keys.save('moved-key', owner, byTest());
      await keys.save('moved-key', { ...owner, role: 'member' }, byTest());
      expect((await keys.find('moved-key'))?.key).toMatchObject({ ...owner, role: 'member' });
    });
  });
}
