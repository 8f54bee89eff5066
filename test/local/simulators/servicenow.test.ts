import { afterEach, beforeEach, expect, test } from 'vitest';
import { BASIC, BEARER, openWorld, type World } from './world.ts';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const TABLE = '/servicenow/api/now/table';
const now = (method: string, path: string, body?: unknown) => world.ask(method, `${TABLE}${path}`, body, BASIC);

async function seeded(number: string): Promise<Record<string, string>> {
  return (await now('GET', `/incident?sysparm_query=number=${number}`)).body.result[0];
}

test('six incidents and four groups are seeded with stable ids', async () => {
  const { body } = await now('GET', '/incident?sysparm_query=ORDERBYnumber&sysparm_fields=number,priority');
  expect(body.result).toHaveLength(6);
  expect(body.result[0]).toEqual({ number: 'INC0010001', priority: '1' });
  const groups = (await now('GET', '/sys_user_group?sysparm_fields=name,sys_id')).body.result;
  expect(groups.map((group: { name: string }) => group.name)).toEqual([
    'Network Operations',
    'Database',
    'Service Desk',
    'Platform',
  ]);
  for (const { sys_id } of groups) expect(sys_id).toMatch(/^[0-9a-f]{32}$/);
});

test('work notes are appended, and the record does not show them as a value', async () => {
  const { sys_id } = await seeded('INC0010001');
  await now('PATCH', `/incident/${sys_id}`, { work_notes: 'first' });
  await now('PATCH', `/incident/${sys_id}`, { work_notes: 'second' });
  const journal = await now('GET', `/sys_journal_field?sysparm_query=element_id=${sys_id}^element=work_notes`);
  expect(journal.body.result.map((row: { value: string }) => row.value)).toEqual(['first', 'second']);
  expect(journal.body.result[0]).toMatchObject({
    element: 'work_notes',
    element_id: sys_id,
    sys_created_by: 'countersign',
    sys_created_on: '2026-01-02 03:04:05',
  });
  const marked = await now('GET', `/sys_journal_field?sysparm_query=element_id=${sys_id}^valueLIKEsecond`);
  expect(marked.body.result).toHaveLength(1);
  expect((await now('GET', `/incident/${sys_id}`)).body.result.work_notes).toBe('');
  const shown = (await now('GET', `/incident/${sys_id}?sysparm_display_value=true`)).body.result.work_notes;
  expect(shown.indexOf('second')).toBeLessThan(shown.indexOf('first'));
});

test('sys_mod_count counts only changes that change a value', async () => {
  const { sys_id } = await seeded('INC0010002');
  expect((await now('PATCH', `/incident/${sys_id}`, { state: 2 })).body.result).toMatchObject({
    state: '2',
    sys_mod_count: '1',
  });
  world.nowMs += 60_000;
  const same = (await now('PATCH', `/incident/${sys_id}`, { state: '2', sys_mod_count: '99', no_such_column: 'x' }))
    .body.result;
  expect(same).toMatchObject({ sys_mod_count: '1', sys_updated_on: '2026-01-02 03:04:05' });
  expect(same).not.toHaveProperty('no_such_column');
  expect((await now('PATCH', `/incident/${sys_id}`, { work_notes: 'x' })).body.result).toMatchObject({
    sys_mod_count: '2',
    sys_updated_on: '2026-01-02 03:05:05',
  });
});

test('a date is stored with a time, and a custom column is empty until it is set', async () => {
  const { sys_id } = await seeded('INC0010002');
  const fields = `/incident/${sys_id}?sysparm_fields=due_date,u_region,no_such_column`;
  expect((await now('GET', fields)).body.result).toEqual({ due_date: '', u_region: '' });
  await now('PATCH', `/incident/${sys_id}`, { due_date: '2026-12-01', u_region: 'emea' });
  expect((await now('GET', fields)).body.result).toEqual({ due_date: '2026-12-01 00:00:00', u_region: 'emea' });
});

test('references are returned as link and value, as plain values, or with display values', async () => {
  const { sys_id } = await seeded('INC0010002');
  const group = (await now('GET', '/sys_user_group?sysparm_query=name=Database')).body.result[0].sys_id;
  await now('PATCH', `/incident/${sys_id}`, { assignment_group: group });
  const read = async (parameter: string) =>
    (await now('GET', `/incident/${sys_id}?sysparm_fields=assignment_group&${parameter}`)).body.result.assignment_group;
  const link = `${world.url}/_sim/servicenow/api/now/table/sys_user_group/${group}`;
  expect(await read('')).toEqual({ link, value: group });
  expect(await read('sysparm_exclude_reference_link=true')).toBe(group);
  expect(await read('sysparm_display_value=all')).toEqual({ display_value: 'Database', link, value: group });
});

test("a missing record and missing credentials have ServiceNow's error format", async () => {
  const nobody = 'f'.repeat(32);
  for (const method of ['GET', 'PATCH']) {
    const missing = await now(method, `/incident/${nobody}`, method === 'PATCH' ? { state: '2' } : undefined);
    expect(missing.status).toBe(404);
    expect(missing.body).toEqual({
      error: { message: 'No Record found', detail: "Record doesn't exist or ACL restricts the record retrieval" },
      status: 'failure',
    });
  }
  const stranger = await world.ask('GET', `${TABLE}/incident`);
  expect(stranger.status).toBe(401);
  expect(stranger.body).toEqual({
    error: { message: 'User is not authenticated', detail: 'Required to provide Auth information' },
    status: 'failure',
  });
  expect((await now('GET', '/no_such_table')).body.error.message).toBe('Invalid table no_such_table');
  expect((await now('GET', '/incident?sysparm_query=ORstate=1')).status).toBe(400);
});

test('an OAuth token works until it expires', async () => {
  const form = 'grant_type=client_credentials&client_id=countersign&client_secret=hush';
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const granted = await world.ask('POST', '/servicenow/oauth_token.do', form, headers);
  const bearer = { authorization: `Bearer ${granted.body.access_token}` };
  expect((await world.ask('GET', `${TABLE}/incident`, undefined, bearer)).status).toBe(200);
  world.nowMs += granted.body.expires_in * 1000;
  expect((await world.ask('GET', `${TABLE}/incident`, undefined, bearer)).status).toBe(401);
  expect((await world.ask('GET', `${TABLE}/incident`, undefined, BEARER)).status).toBe(200);
  expect(JSON.stringify(await world.calls())).not.toContain('hush');
});

test('an incident can be created once with a given sys_id', async () => {
  const sys_id = 'a'.repeat(32);
  const filed = await now('POST', '/incident', {
    sys_id,
    short_description: 'Disk full',
    priority: 1,
    work_notes: 'from a webhook',
  });
  expect(filed.status).toBe(201);
  expect(filed.body.result).toMatchObject({
    sys_id,
    number: 'INC0010007',
    priority: '1',
    state: '1',
    sys_mod_count: '0',
  });
  expect((await now('POST', '/incident', { sys_id })).status).toBe(403);
  expect((await now('POST', '/incident', {})).body.result.number).toBe('INC0010008');
});

test('lists are ordered, limited and counted', async () => {
  const answer = await now(
    'GET',
    '/incident?sysparm_query=priority=2^ORDERBYDESCnumber&sysparm_limit=1&sysparm_offset=1&sysparm_fields=number',
  );
  expect(answer.body.result).toEqual([{ number: 'INC0010002' }]);
  expect(answer.headers.get('x-total-count')).toBe('2');
});
