import { beforeEach, describe, expect, it } from 'vitest';
import { callerWith } from '../../lambdas/api/authorizer/api-keys.ts';
import type { Caller } from '../../lambdas/api/authorizer/caller.ts';
import type { Role } from '../../lambdas/people/rights.ts';
import { BEN } from '../approval/people.ts';
import { byTest } from '../fakes/by-test.ts';
import { MemoryApiKeys } from '../fakes/memory-api-keys.ts';
import { MemoryDefinitions } from '../fakes/memory-definitions.ts';

let holders: { keys: MemoryApiKeys; definitions: MemoryDefinitions };
beforeEach(() => {
  holders = { keys: new MemoryApiKeys(), definitions: new MemoryDefinitions() };
});

async function keyFor(role: Role, holder: Partial<Caller> = {}) {
  await holders.keys.save('key', { tenant: 'acme', person: BEN.id, role, ...holder });
  return (await callerWith(holders, 'key'))?.role;
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

  it('has no rights if they are no person of the tenant: deleted, never added, or of another tenant', async () => {
    expect(await keyFor('owner', { person: 'nobody' })).toBeUndefined();
    await benIs('admin');
    expect(await keyFor('admin')).toBe('admin');
    expect(await keyFor('admin', { tenant: 'globex' })).toBeUndefined();
    await holders.definitions.deletePerson('acme', { ...BEN, role: 'admin' }, byTest());
    expect(await keyFor('admin')).toBeUndefined();
    expect(await keyFor('owner')).toBeUndefined();
  });

  it('is nobody if the key does not exist', async () => {
    await benIs('owner');
    expect(await keyFor('owner')).toBe('owner');
    expect(await callerWith(holders, 'other')).toBeUndefined();
  });
});
