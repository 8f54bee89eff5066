import { beforeEach, describe, expect, it } from 'vitest';
import { ANA, BEN, OLIVIA } from '../../approval/people.ts';
import { MemoryDefinitions } from '../../fakes/memory/memory-definitions.ts';
import { type Asking, askAbout } from './ask-definitions.ts';

const NEXT_WEEK = '2999-01-01T00:00:00.000Z';
let definitions: MemoryDefinitions;

beforeEach(async () => {
  definitions = new MemoryDefinitions();
  for (const person of [ANA, BEN, OLIVIA]) await definitions.savePerson('acme', person);
});

const ask = (route: string, asking: Asking = {}) => askAbout(definitions, route, asking).then(({ body }) => body);

const PUT = 'PUT /api/v1/people/{id}';
const DELETE = 'DELETE /api/v1/people/{id}';
const DELEGATES = 'PUT /api/v1/people/{id}/delegates';
const AWAY = 'PUT /api/v1/people/{id}/away';
const dora = { name: 'Dora', role: 'approver', identities: ['slack:T1/U9'] };

describe('people', () => {
  it('are listed page by page, and only the tenant’s own', async () => {
    const first = await ask('GET /api/v1/people', { query: { limit: '2' } });
    const second = await ask('GET /api/v1/people', { query: { limit: '2', cursor: first.nextCursor } });
    expect([...first.people, ...second.people].map(({ id }) => id)).toEqual(['ana', 'ben', 'olivia']);
    const elsewhere = { tenant: 'globex', person: 'greta', role: 'owner' };
    expect((await ask('GET /api/v1/people', { as: elsewhere })).people).toEqual([]);
    await expect(ask('GET /api/v1/people/{id}', { as: elsewhere, id: 'ana' })).rejects.toMatchObject({ status: 404 });
  });

  it('are added and changed by owners and admins', async () => {
    expect(await ask(PUT, { id: 'dora', body: dora })).toMatchObject({ id: 'dora', tier: 'medium' });
    expect(await ask('GET /api/v1/people/{id}', { id: 'dora' })).toMatchObject({ name: 'Dora' });
    const asBen = { person: 'ben', role: 'approver' };
    await expect(ask(PUT, { as: asBen, id: 'ben', body: { ...dora, tier: 'high' } })).rejects.toMatchObject({
      status: 403,
    });
    const asAdmin = { person: 'ada', role: 'admin' };
    for (const [id, role] of [
      ['ada', 'owner'],
      ['olivia', 'member'],
    ]) {
      await expect(ask(PUT, { as: asAdmin, id, body: { ...dora, role } })).rejects.toMatchObject({ status: 403 });
    }
  });

  it('share no identity, because one person would count twice', async () => {
    const body = { ...dora, identities: ANA.identities };
    await expect(ask(PUT, { id: 'dora', body })).rejects.toMatchObject({
      status: 422,
      message: expect.stringMatching(/belongs to ana/),
    });
    const named = { ...dora, identities: ['ben'] };
    await expect(ask(PUT, { id: 'dora', body: named })).rejects.toMatchObject({ status: 400 });
  });

  it('have no identity of an unknown system, which would never match', async () => {
    const refused = (identity: string) => ask(PUT, { id: 'dora', body: { ...dora, identities: [identity] } });
    const wrong = { status: 422, code: 'PERSON_INVALID' };
    await expect(refused('githb:dora')).rejects.toMatchObject({
      ...wrong,
      message: expect.stringMatching(/did you mean "github"/),
    });
    await expect(refused('jira:dora')).rejects.toMatchObject({
      ...wrong,
      message: expect.stringMatching(/use github, servicenow, slack/),
    });
  });

  it('are suggested for a mistyped id, also with swapped letters', async () => {
    const asked = ask('GET /api/v1/people/{id}', { id: 'bne' });
    await expect(asked).rejects.toMatchObject({ status: 404, message: expect.stringMatching(/did you mean "ben"/) });
    const unlike = ask('GET /api/v1/people/{id}', { id: 'zzzzzz' });
    await expect(unlike).rejects.toMatchObject({
      message: 'there is no person zzzzzz; countersign people list shows all',
    });
  });

  it('have identities without case where GitHub and ServiceNow ignore it', async () => {
    const body = { ...dora, identities: ['github:Dora-D', 'servicenow:Dora.D', 'slack:T1/Uu9'] };
    expect(await ask(PUT, { id: 'dora', body })).toMatchObject({
      identities: ['github:dora-d', 'servicenow:dora.d', 'slack:T1/Uu9'],
    });
    const again = { ...dora, identities: ['github:DORA-D'] };
    await expect(ask(PUT, { id: 'dan', body: again })).rejects.toMatchObject({
      status: 422,
      message: expect.stringMatching(/belongs to dora/),
    });
  });

  it('have no more rights than their current role, with any key', async () => {
    await ask(PUT, { id: 'ada', body: { ...dora, role: 'admin' } });
    const asAda = { person: 'ada', role: 'admin' };
    await ask(PUT, { as: asAda, id: 'dan', body: { name: 'Dan', role: 'member' } });
    await ask(PUT, { id: 'ada', body: { ...dora, role: 'member' } });
    const promotion = ask(PUT, { as: asAda, id: 'ada', body: { ...dora, role: 'admin' } });
    await expect(promotion).rejects.toMatchObject({ status: 403 });
    expect(await ask('GET /api/v1/people/{id}', { id: 'ada' })).toMatchObject({ role: 'member' });
    const asOwner = { person: 'ada', role: 'owner' };
    await expect(ask(AWAY, { as: asOwner, id: 'ben', body: { away: null } })).rejects.toMatchObject({ status: 403 });
  });

  it('set and end their own absence', async () => {
    const asBen = { person: 'ben', role: 'approver' };
    const away = { until: NEXT_WEEK, delegate: 'ana' };
    await ask(DELEGATES, { id: 'ben', body: { delegates: ['ana'] } });
    expect(await ask(AWAY, { as: asBen, id: 'ben', body: { away } })).toMatchObject({ away });
    await expect(ask(AWAY, { as: asBen, id: 'ana', body: { away: null } })).rejects.toMatchObject({ status: 403 });
    expect(await ask(AWAY, { as: asBen, id: 'ben', body: { away: null } })).not.toHaveProperty('away');
    // A key with fewer rights than its person cannot name a delegate.
    const asBensAuditor = { person: 'ben', role: 'auditor' };
    await expect(ask(AWAY, { as: asBensAuditor, id: 'ben', body: { away } })).rejects.toMatchObject({ status: 403 });
  });

  it('name only a delegate with the same rights, or one whom an owner allowed', async () => {
    const away = (delegate: string) => ({ id: 'ana', body: { away: { until: NEXT_WEEK, delegate } } });
    const asAna = { person: 'ana', role: 'approver' };
    // Ben may approve less than Ana, and a member nothing.
    await ask(PUT, { id: 'chloe', body: { name: 'Chloe', role: 'member' } });
    for (const delegate of ['ben', 'chloe']) {
      await expect(ask(AWAY, { as: asAna, ...away(delegate) })).rejects.toMatchObject({
        status: 422,
        message: expect.stringContaining(`countersign people delegates ana --add ${delegate}`),
      });
    }
    expect(await ask(AWAY, { as: asAna, ...away('olivia') })).toMatchObject({ away: { delegate: 'olivia' } });
    const allow = { id: 'ana', body: { delegates: ['chloe'] } };
    const asAdmin = { person: 'ada', role: 'admin', machine: true };
    for (const as of [asAna, asAdmin]) {
      await expect(ask(DELEGATES, { as, ...allow })).rejects.toMatchObject({ status: 403 });
    }
    expect(await ask(DELEGATES, allow)).toMatchObject({
      delegates: [{ person: 'chloe', rights: { changedBy: 'olivia', dependsOn: ['olivia'] } }],
    });
    expect(await ask(AWAY, { as: asAna, ...away('chloe') })).toMatchObject({ away: { delegate: 'chloe' } });
    // The owner's permission stays when an admin changes the person, and is recorded.
    const { id: _id, delegates: _delegates, rights: _rights, ...body } = ANA;
    expect(await ask(PUT, { as: asAdmin, id: 'ana', body })).toMatchObject({ delegates: [{ person: 'chloe' }] });
    await expect(ask(DELEGATES, { id: 'ana', body: { delegates: ['nobody'] } })).rejects.toMatchObject({ status: 422 });
  });

  it('depend on everybody who granted their rights, until somebody independent confirms them', async () => {
    await definitions.savePerson('acme', { ...OLIVIA, id: 'otto', identities: [] });
    const asOtto = { person: 'otto', role: 'owner' };
    const dependsOn = async (id: string) => (await definitions.person('acme', id))?.rights?.dependsOn;
    // Olivia makes Dora an approver. When Otto adds a group, the rights still depend on Olivia too.
    await ask(PUT, { id: 'dora', body: dora });
    await ask(PUT, { as: asOtto, id: 'dora', body: { ...dora, groups: ['network'] } });
    expect(await dependsOn('dora')).toEqual(['olivia', 'otto']);
    // Olivia adds her own Slack identity to a member. When Otto makes the member an approver, she could vote with it.
    await ask(PUT, { as: asOtto, id: 'dan', body: { name: 'Dan', role: 'member' } });
    await ask(PUT, { id: 'dan', body: { name: 'Dan', role: 'member', identities: ['slack:T1/U8'] } });
    await ask(PUT, { as: asOtto, id: 'dan', body: { name: 'Dan', role: 'approver', identities: ['slack:T1/U8'] } });
    expect(await dependsOn('dan')).toEqual(['olivia', 'otto']);
    await definitions.savePerson('acme', { ...OLIVIA, id: 'ada', role: 'admin', identities: [] });
    await ask('POST /api/v1/people/{id}/confirm', { as: { person: 'ada', role: 'admin' }, id: 'dan' });
    expect(await dependsOn('dan')).toEqual([]);
  });

  it('are not changed by a caller who has not seen their last change', async () => {
    const { id: _id, ...ben } = BEN;
    const peopleOf = definitions.people.bind(definitions);
    /** Otto demotes Ben between the read and the write of the request. */
    const demotedMeanwhile = () => {
      definitions.people = async (tenant) => {
        const read = structuredClone(await peopleOf(tenant));
        definitions.people = peopleOf;
        await definitions.savePerson(tenant, { ...BEN, role: 'member' });
        return read;
      };
    };
    demotedMeanwhile();
    await expect(ask(PUT, { id: 'ben', body: { ...ben, name: 'Benjamin' } })).rejects.toMatchObject({
      code: 'CONFLICT',
    });
    expect(await definitions.person('acme', 'ben')).toMatchObject({ role: 'member', name: 'Ben' });
    await definitions.savePerson('acme', BEN);
    demotedMeanwhile();
    await expect(ask(DELETE, { id: 'ben' })).rejects.toMatchObject({ code: 'CONFLICT' });
    expect(await definitions.person('acme', 'ben')).toMatchObject({ role: 'member' });
  });

  it('are deleted by owners and admins, except the last owner; nobody else gets the ID', async () => {
    const asBen = { person: 'ben', role: 'approver' };
    await expect(ask(DELETE, { as: asBen, id: 'ana' })).rejects.toMatchObject({ status: 403 });
    expect(await ask(DELETE, { id: 'ben' })).toEqual({ deleted: 'ben' });
    await expect(ask('GET /api/v1/people/{id}', { id: 'ben' })).rejects.toMatchObject({ status: 404 });
    await expect(ask(DELETE, { id: 'ben' })).rejects.toMatchObject({ status: 404 });
    // The API keys of the former Ben would work again for a new person with his ID.
    await expect(ask(PUT, { id: 'ben', body: dora })).rejects.toMatchObject({
      status: 422,
      message: expect.stringMatching(/deleted/),
    });
    await expect(ask(PUT, { as: asBen, id: 'dora', body: dora })).rejects.toMatchObject({ status: 403 });
    await expect(ask(DELETE, { id: 'olivia' })).rejects.toMatchObject({
      status: 422,
      message: expect.stringMatching(/last owner/),
    });
    await expect(ask(PUT, { id: 'olivia', body: dora })).rejects.toMatchObject({
      status: 422,
      message: expect.stringMatching(/last owner/),
    });
  });

  it('name no delegate who does not exist, and no circle of delegates', async () => {
    const to = (delegate: string) => ({ away: { until: NEXT_WEEK, delegate } });
    await expect(ask(AWAY, { id: 'ben', body: to('nobody') })).rejects.toMatchObject({ status: 422 });
    await expect(ask(AWAY, { id: 'ben', body: to('ben') })).rejects.toMatchObject({ status: 422 });
    await ask(DELEGATES, { id: 'ana', body: { delegates: ['ben'] } });
    await ask(DELEGATES, { id: 'ben', body: { delegates: ['ana'] } });
    await ask(AWAY, { id: 'ana', body: to('ben') });
    await expect(ask(AWAY, { id: 'ben', body: to('ana') })).rejects.toMatchObject({ status: 422 });
  });
});
