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

describe('whoever calls with a key', () => {
  it('may do what it says, if they may themselves', async () => {
    await benIs('admin');
    expect(await keyFor('admin')).toBe('admin');
    expect(await keyFor('operator')).toBe('operator');
    expect(await keyFor('auditor')).toBe('auditor');
  });

  it('has lost what they were demoted from, with every key', async () => {
    await benIs('admin');
    expect(await keyFor('owner')).toBe('admin');
    await benIs('approver');
    expect(await keyFor('owner')).toBe('approver');
    await benIs('member');
    expect(await keyFor('owner')).toBe('member');
  });

  it('may do only what key and person both may: of an auditor’s key in an approver’s hand nothing is left', async () => {
    await benIs('approver');
    expect(await keyFor('auditor')).toBe('member');
    expect(await keyFor('operator')).toBe('member');
  });

  it('and is a machine has the rights of the key', async () => {
    expect(await keyFor('operator', { person: 'nightly-job', machine: true })).toBe('operator');
  });

  it('and is nobody of the tenant has no rights: deleted, never added, or known to another tenant', async () => {
    expect(await keyFor('owner', { person: 'nobody' })).toBeUndefined();
    await benIs('admin');
    expect(await keyFor('admin')).toBe('admin');
    expect(await keyFor('admin', { tenant: 'globex' })).toBeUndefined();
    await holders.definitions.deletePerson('acme', { ...BEN, role: 'admin' }, byTest());
    expect(await keyFor('admin')).toBeUndefined();
    expect(await keyFor('owner')).toBeUndefined();
  });

  it('that is none is nobody', async () => {
    await benIs('owner');
    expect(await keyFor('owner')).toBe('owner');
    expect(await callerWith(holders, 'other')).toBeUndefined();
  });
});
