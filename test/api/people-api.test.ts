import { beforeEach, describe, expect, it } from 'vitest';
import { answerDefinitions, type DefinitionsApi } from '../../lambdas/api/definitions-api.ts';
import type { HttpEvent } from '../../lambdas/entry/http.ts';
import { ANA, BEN, OLIVIA } from '../approval/people.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryDefinitions } from '../fakes/memory-definitions.ts';

const NEXT_WEEK = '2999-01-01T00:00:00.000Z';
let definitions: MemoryDefinitions;

beforeEach(async () => {
  definitions = new MemoryDefinitions();
  for (const person of [ANA, BEN, OLIVIA]) await definitions.savePerson('acme', person);
});

interface Asking {
  as?: { tenant?: string; person: string; role: string };
  id?: string;
  body?: unknown;
  query?: Record<string, string>;
}

async function ask(routeKey: string, { as, id, body, query }: Asking = {}) {
  const caller = { tenant: 'acme', person: 'olivia', role: 'owner', ...as };
  const event = {
    routeKey,
    rawPath: routeKey,
    pathParameters: { id },
    queryStringParameters: query,
    body: body === undefined ? undefined : JSON.stringify(body),
    requestContext: { authorizer: { lambda: caller } },
  } as unknown as HttpEvent;
  const api = { definitions, cursorSecret: async () => 'secret', clock: new FakeClock() } as unknown as DefinitionsApi;
  const answer = await answerDefinitions(api, event);
  return JSON.parse(answer.body ?? '');
}

const PUT = 'PUT /api/v1/people/{id}';
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

  it('share no identity: one would count twice', async () => {
    const body = { ...dora, identities: ANA.identities };
    await expect(ask(PUT, { id: 'dora', body })).rejects.toMatchObject({ status: 422, message: /is ana/ });
    const named = { ...dora, identities: ['ben'] };
    await expect(ask(PUT, { id: 'dora', body: named })).rejects.toMatchObject({ status: 400 });
  });

  it('are told apart by no more than GitHub and ServiceNow tell them apart by', async () => {
    const body = { ...dora, identities: ['github:Dora-D', 'servicenow:Dora.D', 'slack:T1/Uu9'] };
    expect(await ask(PUT, { id: 'dora', body })).toMatchObject({
      identities: ['github:dora-d', 'servicenow:dora.d', 'slack:T1/Uu9'],
    });
    const again = { ...dora, identities: ['github:DORA-D'] };
    await expect(ask(PUT, { id: 'dan', body: again })).rejects.toMatchObject({ status: 422, message: /is dora/ });
  });

  it('have no more rights than they are given here, whatever their key was made for', async () => {
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

  it('say themselves that they are away, and back', async () => {
    const asBen = { person: 'ben', role: 'approver' };
    const away = { until: NEXT_WEEK, delegate: 'ana' };
    expect(await ask(AWAY, { as: asBen, id: 'ben', body: { away } })).toMatchObject({ away });
    await expect(ask(AWAY, { as: asBen, id: 'ana', body: { away: null } })).rejects.toMatchObject({ status: 403 });
    expect(await ask(AWAY, { as: asBen, id: 'ben', body: { away: null } })).not.toHaveProperty('away');
    // A key to look with hands nobody's place to another.
    const asBensAuditor = { person: 'ben', role: 'auditor' };
    await expect(ask(AWAY, { as: asBensAuditor, id: 'ben', body: { away } })).rejects.toMatchObject({ status: 403 });
  });

  it('leave their place to somebody who can act: no stranger, and no circle', async () => {
    const to = (delegate: string) => ({ away: { until: NEXT_WEEK, delegate } });
    await expect(ask(AWAY, { id: 'ben', body: to('nobody') })).rejects.toMatchObject({ status: 422 });
    await expect(ask(AWAY, { id: 'ben', body: to('ben') })).rejects.toMatchObject({ status: 422 });
    await ask(AWAY, { id: 'ana', body: to('ben') });
    await expect(ask(AWAY, { id: 'ben', body: to('ana') })).rejects.toMatchObject({ status: 422 });
  });
});
