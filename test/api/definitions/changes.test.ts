import { beforeEach, describe, expect, it } from 'vitest';
import type { Change } from '../../../lambdas/pipeline/definition-changes.ts';
import { ANA, BEN, OLIVIA } from '../../approval/people.ts';
import { FakeClock } from '../../fakes/fake-clock.ts';
import { MemoryDefinitions } from '../../fakes/memory/memory-definitions.ts';
import { type Asking, askAbout } from './ask-definitions.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const PROD = { coolDownMs: DAY_MS, secondOwner: true };
const OTTO = { ...OLIVIA, id: 'otto', name: 'Otto', identities: [] };
const asOtto = { person: 'otto', role: 'owner' };
const PUT = 'PUT /api/v1/people/{id}';
const CONFIRM = 'POST /api/v1/changes/pending/{id}/confirm';
const REJECT = 'POST /api/v1/changes/pending/{id}/reject';
const dora = { name: 'Dora', role: 'approver', identities: ['slack:T1/U9'] };

let definitions: MemoryDefinitions;
let clock: FakeClock;
beforeEach(async () => {
  definitions = new MemoryDefinitions();
  clock = new FakeClock();
  for (const person of [ANA, BEN, OLIVIA, OTTO]) await definitions.savePerson('acme', person);
});

const ask = (route: string, asking: Asking = {}) => askAbout(definitions, route, { clock, ...asking });
const askProd = (route: string, asking: Asking = {}) => ask(route, { peopleRules: PROD, ...asking });
const history = async (): Promise<Change[]> => (await ask('GET /api/v1/changes')).body.changes;
const person = (id: string) => definitions.person('acme', id);

const askOutsideProd = (as: Asking['as']) => ask(PUT, { id: 'dora', body: dora, as });

/** Olivia requests a change in prod; returns the ID of the pending change. */
async function requested(asking: Asking): Promise<string> {
  const { status, body } = await askProd(PUT, asking);
  expect(status).toBe(202);
  return body.pending.changeId;
}

describe('the history of changes', () => {
  it('records who changed what and when, with the values before and after, the newest first', async () => {
    await ask(PUT, { id: 'dora', body: dora });
    clock.advance(1000);
    await ask(PUT, { id: 'dora', body: { ...dora, role: 'member' }, as: asOtto });
    clock.advance(1000);
    await ask('DELETE /api/v1/people/{id}', { id: 'dora' });
    const [deleted, changed, created] = await history();
    expect(created).toMatchObject({
      actor: 'olivia',
      kind: 'person',
      name: 'dora',
      action: 'created',
      before: null,
      after: { role: 'approver', rights: { changedBy: 'olivia', dependsOn: ['olivia'] } },
    });
    expect(changed).toMatchObject({
      actor: 'otto',
      action: 'changed',
      before: { role: 'approver' },
      after: { role: 'member' },
    });
    expect(deleted).toMatchObject({ actor: 'olivia', action: 'deleted', before: { role: 'member' }, after: null });
    expect([created?.at, changed?.at].every((at) => at !== undefined && at < (deleted?.at ?? ''))).toBe(true);
  });

  it('records workflows and automations too, but no save that changes nothing', async () => {
    const file = 'name: example\nsteps:\n  - { id: a, tool: transform, with: { output: 1 } }\n';
    await ask('POST /api/v1/workflows', { body: file });
    clock.advance(1000);
    const automation = {
      trigger: { source: 'github', event: 'issues.opened' },
      workflow: { name: 'example', version: 1 },
    };
    for (let time = 0; time < 2; time += 1) {
      await ask('PUT /api/v1/automations/{name}', { id: 'label', body: automation });
      clock.advance(1000);
    }
    expect((await history()).map(({ kind, name, actor }) => [kind, name, actor]).slice(0, 2)).toEqual([
      ['automation', 'label', 'olivia'],
      ['workflow', 'example v1', 'olivia'],
    ]);
  });

  it('is refused for a time that ends before it begins, which DynamoDB could not read', async () => {
    const query = { since: '2026-01-03', until: '2026-01-02' };
    await expect(ask('GET /api/v1/changes', { query })).rejects.toMatchObject({ status: 400 });
  });

  it('is paged, and shows nothing of another tenant', async () => {
    for (const id of ['d1', 'd2', 'd3']) {
      await ask(PUT, { id, body: { name: id, role: 'member' } });
      clock.advance(1000);
    }
    const first = await ask('GET /api/v1/changes', { query: { limit: '2' } });
    const second = await ask('GET /api/v1/changes', { query: { limit: '2', cursor: first.body.nextCursor } });
    const names = [...first.body.changes, ...second.body.changes].map(({ name }: Change) => name);
    expect(names.slice(0, 3)).toEqual(['d3', 'd2', 'd1']);
    const elsewhere = { tenant: 'globex', person: 'greta', role: 'owner', machine: true };
    expect((await ask('GET /api/v1/changes', { as: elsewhere })).body.changes).toEqual([]);
    const cursor = first.body.nextCursor;
    await expect(ask('GET /api/v1/changes', { as: elsewhere, query: { cursor } })).rejects.toMatchObject({
      code: 'BAD_CURSOR',
    });
  });
});

describe('in prod, a change that widens who may approve', () => {
  it('waits for a second owner, then records both people and a cool-down', async () => {
    const changeId = await requested({ id: 'dora', body: dora });
    expect(await person('dora')).toBeUndefined();
    const { body } = await ask('GET /api/v1/changes/pending');
    expect(body.pending).toMatchObject([
      { changeId, person: 'dora', requestedBy: 'olivia', expired: false, widens: [expect.stringContaining('dora')] },
    ]);
    clock.advance(1000);
    expect((await askProd(CONFIRM, { id: changeId, as: asOtto })).status).toBe(200);
    const at = new Date(clock.now()).toISOString();
    const countsFrom = new Date(clock.now() + DAY_MS).toISOString();
    const rights = { changedBy: 'olivia', confirmedBy: 'otto', changedAt: at, countsFrom, dependsOn: [] };
    expect((await person('dora'))?.rights).toEqual(rights);
    const [confirmed, asked] = await history();
    expect(confirmed).toMatchObject({ action: 'confirmed', actor: 'otto', requestedBy: 'olivia', name: 'dora' });
    expect(asked).toMatchObject({ action: 'requested', actor: 'olivia', after: { role: 'approver' } });
    await expect(askProd(CONFIRM, { id: changeId, as: asOtto })).rejects.toMatchObject({ status: 404 });
  });

  it.each([
    ['who asked for it', { person: 'olivia', role: 'owner' }],
    ['a machine', { person: 'job', role: 'owner', machine: true }],
    ['somebody who is no owner', { person: 'ana', role: 'owner' }],
    ['an owner with a lesser key', { person: 'otto', role: 'admin' }],
  ])('is not confirmed by %s', async (_who, as) => {
    const changeId = await requested({ id: 'dora', body: dora });
    await expect(askProd(CONFIRM, { id: changeId, as })).rejects.toMatchObject({ status: 403 });
    expect(await person('dora')).toBeUndefined();
  });

  it('is not requested with the key of a machine, because the confirming owner could be using it', async () => {
    const as = { person: 'ci', role: 'admin', machine: true };
    for (const ask of [askProd(PUT, { id: 'dora', body: dora, as }), askOutsideProd(as)]) {
      await expect(ask).rejects.toMatchObject({ status: 403, message: expect.stringMatching(/ci is a machine/) });
    }
    expect((await ask('GET /api/v1/changes/pending')).body.pending).toEqual([]);
    expect(await person('dora')).toBeUndefined();
    // Machines may make changes that widen nothing.
    expect((await askProd(PUT, { id: 'chloe', body: { name: 'Chloe', role: 'member' }, as })).status).toBe(200);
  });

  it('is not confirmed by an owner whom the requester made an owner', async () => {
    await ask(PUT, { id: 'puppet', body: { name: 'Puppet', role: 'owner' } });
    const changeId = await requested({ id: 'dora', body: dora });
    const asPuppet = { person: 'puppet', role: 'owner' };
    await expect(askProd(CONFIRM, { id: changeId, as: asPuppet })).rejects.toMatchObject({
      status: 403,
      message: expect.stringMatching(/olivia/),
    });
  });

  it('is not confirmed by an owner who made the requester an owner', async () => {
    await ask(PUT, { id: 'puppet', body: { name: 'Puppet', role: 'owner' } });
    const changeId = await requested({ id: 'dora', body: dora, as: { person: 'puppet', role: 'owner' } });
    await expect(askProd(CONFIRM, { id: changeId })).rejects.toMatchObject({
      status: 403,
      message: expect.stringMatching(/you gave puppet/),
    });
    expect(await person('dora')).toBeUndefined();
    expect((await askProd(CONFIRM, { id: changeId, as: asOtto })).status).toBe(200);
  });

  it.each([
    ['a higher role', 'ben', { ...BEN, role: 'admin' }],
    ['a higher tier', 'ben', { ...BEN, tier: 'high' }],
    ['another group', 'ben', { ...BEN, groups: ['network', 'database'] }],
    ['another identity', 'ben', { ...BEN, identities: ['github:ben'] }],
    ['an identity less', 'ana', { ...ANA, identities: [] }],
  ])('by %s waits too', async (_what, id, { id: _id, ...body }) => {
    const before = await person(id);
    await requested({ id, body });
    expect(await person(id)).toEqual(before);
  });

  it('by an additional delegate waits too', async () => {
    const route = 'PUT /api/v1/people/{id}/delegates';
    const { status, body } = await askProd(route, { id: 'ana', body: { delegates: ['ben'] } });
    expect(status).toBe(202);
    await askProd(CONFIRM, { id: body.pending.changeId, as: asOtto });
    expect((await person('ana'))?.delegates).toMatchObject([
      { person: 'ben', rights: { changedBy: 'olivia', confirmedBy: 'otto', dependsOn: [] } },
    ]);
    expect((await person('ana'))?.rights).toBeUndefined();
  });

  it('is rejected with a reason, or expires; both are recorded and nothing changes', async () => {
    const rejected = await requested({ id: 'dora', body: dora });
    await expect(askProd(REJECT, { id: rejected, as: asOtto, body: {} })).rejects.toMatchObject({ status: 400 });
    await askProd(REJECT, { id: rejected, as: asOtto, body: { reason: 'who is that?' } });
    clock.advance(1000);
    const expired = await requested({ id: 'dora', body: dora });
    clock.advance(7 * DAY_MS);
    expect((await ask('GET /api/v1/changes/pending')).body.pending).toMatchObject([{ expired: true }]);
    await expect(askProd(CONFIRM, { id: expired, as: asOtto })).rejects.toMatchObject({ status: 409 });
    expect((await history()).map(({ action, reason }) => [action, reason]).slice(0, 4)).toEqual([
      ['expired', undefined],
      ['requested', undefined],
      ['rejected', 'who is that?'],
      ['requested', undefined],
    ]);
    expect(await person('dora')).toBeUndefined();
    expect((await ask('GET /api/v1/changes/pending')).body.pending).toEqual([]);
  });

  it('is not made if the person has changed meanwhile', async () => {
    const { id: _id, ...ben } = BEN;
    const changeId = await requested({ id: 'ben', body: { ...ben, tier: 'high' } });
    await askProd(PUT, { id: 'ben', body: { ...ben, role: 'member' } });
    await expect(askProd(CONFIRM, { id: changeId, as: asOtto })).rejects.toMatchObject({ status: 409 });
    expect(await person('ben')).toMatchObject({ role: 'member', tier: 'medium' });
  });

  it('is refused with what to do if there is no second owner', async () => {
    await askProd('DELETE /api/v1/people/{id}', { id: 'otto' });
    await expect(askProd(PUT, { id: 'dora', body: dora })).rejects.toMatchObject({
      status: 422,
      message: expect.stringMatching(/no second owner.*docs\/administration.md/),
    });
  });

  it('needs confirmation; a change that narrows it is made at once', async () => {
    const { id: _id, ...ben } = BEN;
    expect((await askProd(PUT, { id: 'ben', body: { ...ben, groups: [] } })).status).toBe(200);
    expect(await person('ben')).toMatchObject({ groups: [] });
    expect((await askProd(PUT, { id: 'mia', body: { name: 'Mia', role: 'member' } })).status).toBe(200);
  });
});

describe('another person confirms rights', () => {
  const CONFIRM_PERSON = 'POST /api/v1/people/{id}/confirm';

  it('whose votes then also count for writes of the person who granted the rights', async () => {
    await ask(PUT, { id: 'dora', body: dora });
    for (const as of [
      { person: 'dora', role: 'owner' },
      { person: 'ana', role: 'approver' },
    ]) {
      await expect(ask(CONFIRM_PERSON, { id: 'dora', as })).rejects.toMatchObject({ status: 403 });
    }
    await expect(ask(CONFIRM_PERSON, { id: 'dora' })).rejects.toMatchObject({
      status: 422,
      message: expect.stringMatching(/olivia/),
    });
    expect((await ask(CONFIRM_PERSON, { id: 'dora', as: asOtto })).body.rights).toMatchObject({
      changedBy: 'olivia',
      confirmedBy: 'otto',
      dependsOn: [],
    });
    expect((await history())[0]).toMatchObject({
      actor: 'otto',
      name: 'dora',
      before: { rights: { dependsOn: ['olivia'] } },
    });
  });
});
