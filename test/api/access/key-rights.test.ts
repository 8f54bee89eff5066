import { beforeEach, describe, expect, it } from 'vitest';
import { type ApiKey, callerWithKey } from '../../../lambdas/api/authorizer/api-keys.ts';
import type { Role } from '../../../lambdas/people/rights.ts';
import { BEN } from '../../approval/people.ts';
import { byTest } from '../../fakes/by-test.ts';
import { FakeClock } from '../../fakes/fake-clock.ts';
import { MemoryApiKeys } from '../../fakes/memory/memory-api-keys.ts';
import { MemoryDefinitions } from '../../fakes/memory/memory-definitions.ts';

const HOUR_MS = 60 * 60 * 1000;

let holders: { keys: MemoryApiKeys; definitions: MemoryDefinitions; clock: FakeClock };
beforeEach(() => {
  holders = { keys: new MemoryApiKeys(), definitions: new MemoryDefinitions(), clock: new FakeClock() };
});

async function keyFor(role: Role, holder: Partial<ApiKey> = {}) {
  await holders.keys.save('key', { tenant: 'acme', person: BEN.id, role, ...holder });
  return (await callerWithKey(holders, 'key')).role;
}
const benIs = (role: Role) => holders.definitions.savePerson('acme', { ...BEN, role });

describe('the caller with a key', () => {
  it('has the role of the key, if their own role has the same rights', async () => {
    await benIs('admin');
    expect(await keyFor('admin')).toBe('admin');
    expect(await keyFor('operator')).toBe('operator');
    expect(await keyFor('auditor')).toBe('auditor');
  });

  it('loses rights with every key when demoted', async () => {
    await benIs('admin');
    expect(await keyFor('owner')).toBe('admin');
    await benIs('approver');
    expect(await keyFor('owner')).toBe('approver');
    await benIs('member');
    expect(await keyFor('owner')).toBe('member');
  });

  it('has only the rights that key and person share: an approver with an auditor’s key is a member', async () => {
    await benIs('approver');
    expect(await keyFor('auditor')).toBe('member');
    expect(await keyFor('operator')).toBe('member');
  });

  it('has the rights of the key if it is a machine', async () => {
    expect(await keyFor('operator', { person: 'nightly-job', machine: true })).toBe('operator');
  });

  it('is refused if they are no person of the tenant: deleted, never added, or of another tenant', async () => {
    await expect(keyFor('owner', { person: 'nobody' })).rejects.toThrow('nobody is not a person of this tenant');
    await benIs('admin');
    expect(await keyFor('admin')).toBe('admin');
    await expect(keyFor('admin', { tenant: 'globex' })).rejects.toThrow('ben is not a person');
    await holders.definitions.deletePerson('acme', { ...BEN, role: 'admin' }, byTest());
    await expect(keyFor('admin')).rejects.toThrow('ben is not a person');
    await expect(keyFor('owner')).rejects.toThrow('ben is not a person');
  });

  it('is listed after a refused use too, so that owners find unmarked keys of programs', async () => {
    await expect(keyFor('operator', { person: 'nightly-job', name: 'old' })).rejects.toThrow(
      'keys create NAME --machine',
    );
    expect(await holders.keys.named('acme', 'old')).toHaveProperty('lastUsedAt');
  });

  it('is refused if the key does not exist, is empty or is longer than any key', async () => {
    await benIs('owner');
    expect(await keyFor('owner')).toBe('owner');
    for (const other of ['other', '', 'k'.repeat(100_000)]) {
      await expect(callerWithKey(holders, other)).rejects.toThrow('does not exist or was revoked');
    }
  });

  it('is refused from the moment on at which the key expires or is revoked', async () => {
    await benIs('owner');
    const expiresAt = new Date(holders.clock.now() + 1).toISOString();
    expect(await keyFor('owner', { name: 'short', expiresAt })).toBe('owner');
    holders.clock.advance(1);
    await expect(callerWithKey(holders, 'key')).rejects.toThrow(`the API key short expired at ${expiresAt}`);
    expect(await keyFor('owner', { name: 'short' })).toBe('owner');
    const stored = await holders.keys.named('acme', 'short');
    if (!stored) throw new Error('no key');
    await holders.keys.revoke(stored, byTest());
    await expect(callerWithKey(holders, 'key')).rejects.toThrow('was revoked');
  });

  it('is recorded as a use of the key once an hour', async () => {
    await benIs('owner');
    const uses: string[] = [];
    const record = holders.keys.recordUse.bind(holders.keys);
    holders.keys.recordUse = (stored, at) => {
      uses.push(at);
      return record(stored, at);
    };
    await holders.keys.save('key', { tenant: 'acme', person: BEN.id, role: 'owner', name: 'ci' });
    const start = Math.ceil(holders.clock.now() / HOUR_MS) * HOUR_MS;
    holders.clock.advance(start - holders.clock.now());
    for (const afterMs of [0, 1, HOUR_MS - 2, 1, HOUR_MS]) {
      holders.clock.advance(afterMs);
      await callerWithKey(holders, 'key');
    }
    const hours = [0, 1, 2].map((hours) => new Date(start + hours * HOUR_MS).toISOString());
    expect(uses).toEqual(hours);
    expect(await holders.keys.named('acme', 'ci')).toMatchObject({ lastUsedAt: hours[2] });
  });
});
