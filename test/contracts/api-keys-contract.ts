import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiKeys } from '../../lambdas/api/authorizer/api-keys.ts';
import type { Caller } from '../../lambdas/api/authorizer/caller.ts';
import { byTest } from '../fakes/by-test.ts';

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
    const owner: Caller = { tenant: 'acme', person: 'olivia', role: 'owner' };

    it('finds who a key belongs to', async () => {
      await keys.save('a-key', owner, byTest());
      expect(await keys.find('a-key')).toEqual(owner);
    });

    it.each(['', 'a-ke', 'a-key ', 'A-KEY', '#'])('knows nobody by the key "%s"', async (wrong) => {
      await keys.save('a-key', owner, byTest());
      expect(await keys.find(wrong)).toBeUndefined();
    });

    it('gives a key saved again to the newer caller', async () => {
      await keys.save('moved-key', owner, byTest());
      await keys.save('moved-key', { ...owner, role: 'member' }, byTest());
      expect(await keys.find('moved-key')).toEqual({ ...owner, role: 'member' });
    });
  });
}
