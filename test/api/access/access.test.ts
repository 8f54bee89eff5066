import { beforeEach, describe, expect, it } from 'vitest';
import { handleAccess } from '../../../lambdas/api/access/access.ts';
import { callerWithKey } from '../../../lambdas/api/authorizer/api-keys.ts';
import type { Caller } from '../../../lambdas/api/authorizer/caller.ts';
import { accessRoutes } from '../../../lambdas/api/contract/access.ts';
import type { RouteDefinition } from '../../../lambdas/api/contract/route.ts';
import { personBehind } from '../../../lambdas/people/people.ts';
import type { Role } from '../../../lambdas/people/rights.ts';
import { ANA, BEN, OLIVIA } from '../../approval/people.ts';
import { byTest } from '../../fakes/by-test.ts';
import { CountingIds } from '../../fakes/counting-ids.ts';
import { FakeClock } from '../../fakes/fake-clock.ts';
import { MemoryApiKeys } from '../../fakes/memory/memory-api-keys.ts';
import { MemoryDefinitions } from '../../fakes/memory/memory-definitions.ts';
import { MemoryLive } from '../../fakes/memory/memory-live.ts';
import { eventFor } from '../every-route.ts';

const OTTO = { ...OLIVIA, id: 'otto', role: 'admin' as const, identities: [] };

let ports: Parameters<typeof handleAccess>[0] & { keys: MemoryApiKeys; definitions: MemoryDefinitions };
let clock: FakeClock;
beforeEach(async () => {
  const definitions = new MemoryDefinitions();
  for (const person of [ANA, BEN, OLIVIA, OTTO]) await definitions.savePerson('acme', person);
  let made = 0;
  clock = new FakeClock();
  ports = {
    keys: new MemoryApiKeys(),
    definitions,
    cursorSecret: async () => 'secret',
    clock,
    ids: new CountingIds(),
    live: new MemoryLive(clock),
    liveUrl: 'wss://live.test/live',
    newTicket: () => 'a-ticket',
    newApiKey: () => {
      made += 1;
      return `csk_${made}`;
    },
  };
});

const as = (person: string, role: Role, further: Partial<Caller> = {}): Caller => ({
  tenant: 'acme',
  person,
  role,
  ...further,
});
const OWNER = as('olivia', 'owner');

async function ask(route: RouteDefinition, caller: Caller, sent: { name?: string; body?: unknown } = {}) {
  const event = eventFor(route, caller as never, { params: { name: sent.name ?? '' }, body: sent.body });
  const { statusCode, body } = await handleAccess(ports, event);
  return { status: statusCode, body: JSON.parse(body ?? '') };
}
const create = (caller: Caller, body: Record<string, unknown>) => ask(accessRoutes.createApiKey, caller, { body });
const list = async (caller: Caller) =>
  (await ask(accessRoutes.listApiKeys, caller)).body.apiKeys.map(({ name }: { name: string }) => name);
const revoke = (caller: Caller, name: string) => ask(accessRoutes.revokeApiKey, caller, { name });
const holders = () => ({ keys: ports.keys, definitions: ports.definitions, clock });

describe('a new key', () => {
  it('is shown once, stored by its hash, and works for its person with the role asked for', async () => {
    const { status, body } = await create(OWNER, { name: 'mine', role: 'operator' });
    expect(status).toBe(201);
    expect(body).toMatchObject({ key: 'csk_1', name: 'mine', person: 'olivia', role: 'operator', machine: false });
    expect(body.expiresAt).toBe(new Date(clock.now() + 90 * 24 * 3_600_000).toISOString());
    const stored = await ports.keys.named('acme', 'mine');
    expect(JSON.stringify([stored, ports.keys.changes])).not.toContain('csk_1');
    const caller = await callerWithKey(holders(), 'csk_1');
    expect(caller).toMatchObject({ person: 'olivia', role: 'operator', credential: { kind: 'api_key', name: 'mine' } });
    expect(caller.credential?.issuedBy).toBeUndefined();
    expect((await ask(accessRoutes.getMe, caller)).body).toMatchObject({ person: 'olivia', role: 'operator' });
  });

  it('is in the history with who created it, as is its end', async () => {
    await create(OWNER, { name: 'mine', role: 'member' });
    await revoke(OWNER, 'mine');
    expect(ports.keys.changes.map(({ actor, action, name }) => [actor, action, name])).toEqual([
      ['olivia', 'created', 'mine'],
      ['olivia', 'deleted', 'mine'],
    ]);
    expect(ports.keys.changes[0]?.after).toMatchObject({ person: 'olivia', role: 'member', createdBy: 'olivia' });
  });

  it.each<[Role, Role]>([
    ['admin', 'owner'],
    ['operator', 'admin'],
    ['operator', 'approver'],
    ['operator', 'auditor'],
    ['member', 'approver'],
    ['auditor', 'operator'],
  ])('of a caller who is %s cannot be %s', async (role, wanted) => {
    // Olivia is an owner: the key that she uses now has fewer rights.
    const refused = create(as('olivia', role), { name: 'more', role: wanted });
    await expect(refused).rejects.toMatchObject({ status: 403, message: expect.stringContaining('more rights') });
    expect(await ports.keys.list('acme')).toEqual([]);
  });

  it('has the rights that its creator has at this moment, not those that the credential had', async () => {
    await ports.definitions.savePerson('acme', { ...OLIVIA, role: 'member' });
    await expect(create(OWNER, { name: 'late', role: 'owner' })).rejects.toMatchObject({ status: 403 });
    expect((await create(OWNER, { name: 'late' })).body).toMatchObject({ role: 'member' });
  });

  it('cannot be created by somebody who was deleted meanwhile', async () => {
    await ports.definitions.deletePerson('acme', OTTO, byTest());
    await expect(create(as('otto', 'admin'), { name: 'late' })).rejects.toMatchObject({ status: 403 });
  });

  it('for a machine belongs to nobody, but its actions are those of the person who created it', async () => {
    const { body } = await create(OWNER, { name: 'ci', machine: true, role: 'operator' });
    expect(body).toMatchObject({ person: 'machine:ci@olivia', machine: true });
    expect(await callerWithKey(holders(), body.key)).toMatchObject({ machine: true, role: 'operator' });
    expect(personBehind(await ports.definitions.people('acme'), body.person)).toBe('olivia');
    await expect(create(OWNER, { name: 'ci2', machine: true })).rejects.toMatchObject({ status: 400 });
    const both = { name: 'ci2', machine: true, role: 'member', person: 'ana' };
    await expect(create(OWNER, both)).rejects.toMatchObject({ status: 400 });
    const byOperator = create(as('ben', 'operator'), { name: 'ci2', machine: true, role: 'member' });
    await expect(byOperator).rejects.toMatchObject({ status: 403 });
  });

  it('of a machine is for a machine, with at most its rights', async () => {
    const machine = as('machine:ci@olivia', 'admin', { machine: true });
    const { body } = await create(machine, { name: 'next', machine: true, role: 'operator' });
    expect(body.person).toBe('machine:next@olivia');
    for (const person of [undefined, 'ana', 'olivia']) {
      await expect(create(machine, { name: 'x', person, role: 'member' })).rejects.toMatchObject({ status: 403 });
    }
    await expect(create(machine, { name: 'x', machine: true, role: 'owner' })).rejects.toMatchObject({ status: 403 });
  });

  it('for another person may only read, and neither it nor a key created with it proves who uses it', async () => {
    for (const role of ['approver', 'operator', 'admin', 'owner'] as const) {
      const refused = create(OWNER, { name: 'bens', person: 'ben', role });
      await expect(refused).rejects.toMatchObject({ status: 403, message: expect.stringContaining('may only read') });
    }
    const { body } = await create(OWNER, { name: 'bens', person: 'ben', role: 'member' });
    const asBen = await callerWithKey(holders(), body.key);
    expect(asBen).toMatchObject({ person: 'ben', role: 'member', credential: { issuedBy: 'olivia' } });
    const { body: second } = await create(asBen, { name: 'bens-own' });
    expect((await callerWithKey(holders(), second.key)).credential?.issuedBy).toBe('olivia');
    const byMember = create(as('ana', 'approver'), { name: 'x', person: 'ben', role: 'member' });
    await expect(byMember).rejects.toMatchObject({ status: 403 });
  });

  it('is refused for a person who does not exist, with the nearest name', async () => {
    const refused = create(OWNER, { name: 'x', person: 'bem', role: 'member' });
    await expect(refused).rejects.toMatchObject({
      status: 422,
      message: 'there is no person bem; did you mean "ben"?',
    });
  });

  it('needs a name of its own, also at the same time', async () => {
    const made = await Promise.allSettled([1, 2, 3].map(() => create(OWNER, { name: 'one' })));
    expect(made.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected']);
    await expect(create(OWNER, { name: 'one' })).rejects.toMatchObject({ status: 409, code: 'CONFLICT' });
  });

  it.each(['', 'Upper', 'a b', 'a#b', '-a', 'x'.repeat(64)])('cannot have the name "%s"', async (name) => {
    await expect(create(OWNER, { name })).rejects.toMatchObject({ status: 400 });
  });

  it('expires in the future and within a year', async () => {
    const inDays = (days: number) => new Date(clock.now() + days * 24 * 3_600_000).toISOString();
    for (const expiresAt of [inDays(0), inDays(-1), inDays(367), 'tomorrow']) {
      await expect(create(OWNER, { name: 'x', expiresAt })).rejects.toMatchObject({ status: 400 });
    }
    expect((await create(OWNER, { name: 'x', expiresAt: inDays(366) })).body.expiresAt).toBe(inDays(366));
  });

  it('is refused when the tenant has 200', async () => {
    for (let index = 0; index < 200; index += 1) {
      await ports.keys.save(`k${index}`, { ...as('ana', 'member'), name: `k${index}` });
    }
    await expect(create(OWNER, { name: 'x' })).rejects.toMatchObject({ status: 409 });
  });
});

describe('keys', () => {
  beforeEach(async () => {
    await create(OWNER, { name: 'owners' });
    await create(as('ana', 'approver'), { name: 'anas' });
    await create(OWNER, { name: 'ci', machine: true, role: 'operator' });
  });

  it('are listed to owners, admins and auditors; others see their own', async () => {
    for (const role of ['owner', 'admin', 'auditor'] as const) {
      expect(await list(as('ben', role))).toEqual(['anas', 'ci', 'owners']);
    }
    expect(await list(as('ana', 'approver'))).toEqual(['anas']);
    expect(await list(as('ben', 'approver'))).toEqual([]);
    expect(await list({ ...OWNER, tenant: 'globex' })).toEqual([]);
  });

  it('are revoked by their person, or by owners and admins; those of an owner only by an owner', async () => {
    await expect(revoke(as('ben', 'approver'), 'anas')).rejects.toMatchObject({ status: 403 });
    await expect(revoke(as('otto', 'admin'), 'owners')).rejects.toMatchObject({ status: 403 });
    expect((await revoke(as('ana', 'approver'), 'anas')).body).toEqual({ revoked: 'anas' });
    expect((await revoke(as('otto', 'admin'), 'ci')).status).toBe(200);
    expect(await list(OWNER)).toEqual(['owners']);
    await expect(revoke(OWNER, 'anas')).rejects.toMatchObject({ status: 404 });
  });

  it('that do not exist are named with the nearest one that the caller may see', async () => {
    const ownersSee = revoke(OWNER, 'owner');
    await expect(ownersSee).rejects.toMatchObject({ message: 'there is no API key owner; did you mean "owners"?' });
    await expect(revoke(as('ana', 'approver'), 'owner')).rejects.toMatchObject({
      message: 'there is no API key owner; countersign keys list shows all',
    });
  });

  it('show whose they are: of a person, of a machine, or of nobody, which are refused', async () => {
    const { keys } = ports;
    await keys.save('a', { tenant: 'acme', person: 'nightly-job', role: 'operator', name: 'old' });
    await keys.save('b', { tenant: 'acme', person: 'machine:ci@olivia', role: 'operator', machine: true, name: 'ci' });
    const { body } = await ask(accessRoutes.listApiKeys, OWNER);
    const holders = body.apiKeys.map(({ name, holder }: { name: string; holder: string }) => [name, holder]);
    expect(holders).toEqual(
      expect.arrayContaining([
        ['old', 'none'],
        ['ci', 'machine'],
      ]),
    );
    expect(holders.filter(([, holder]: string[]) => holder === 'person')).not.toHaveLength(0);
  });

  it('show that they have expired', async () => {
    clock.advance(90 * 24 * 3_600_000);
    const { body } = await ask(accessRoutes.listApiKeys, OWNER);
    expect(body.apiKeys.map(({ expired }: { expired: boolean }) => expired)).toEqual([true, true, true]);
  });
});
