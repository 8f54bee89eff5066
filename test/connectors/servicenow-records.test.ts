import { afterEach, describe, expect, it, vi } from 'vitest';
import { findIncidents, updateIncident } from '../../lambdas/connectors/servicenow/incidents.ts';
import { createRecord, findRecord, updateAnyRecord } from '../../lambdas/connectors/servicenow/records.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { SYS_ID } from '../worker/workshop.ts';

afterEach(() => vi.unstubAllGlobals());

const access = {
  baseUrl: 'http://servicenow',
  instance: 'acme',
  credential: { username: 'x', password: 'y' },
  allowedTables: ['problem'],
};
const context = { access, mark: 'countersign:m', openSince: STORY_BEGINS_AT };
const REFUSED = { code: 'TARGET_REFUSED', retryable: false };

/** ServiceNow with these rows for every query; returns the requests. */
function returning(result: unknown, total = Array.isArray(result) ? result.length : 0) {
  const requests: { url: string; body?: string }[] = [];
  vi.stubGlobal('fetch', async (url: string, init: { body?: string }) => {
    requests.push({ url: decodeURIComponent(url), body: init.body });
    return Response.json({ result }, { headers: { 'x-total-count': String(total) } });
  });
  return requests;
}

describe('finding records', () => {
  const find = (where: unknown, row: object[] = []) => {
    const requests = returning(row);
    const input = findIncidents.parse({ where, fields: ['number'], orderBy: 'number', descending: true });
    return { requests, found: findIncidents.perform(input, context) };
  };

  it('sends all conditions as one query', async () => {
    const { requests, found } = find([
      { field: 'state', in: ['1', '2'] },
      { field: 'short_description', contains: 'VPN' },
      { field: 'opened_at', atLeast: '2026-01-01 00:00:00' },
      { field: 'assigned_to', empty: true },
    ]);
    expect((await found).output).toEqual({ records: [], total: 0, truncated: false });
    expect(requests[0]?.url).toContain(
      'sysparm_query=stateIN1,2^short_descriptionLIKEVPN^opened_at>=2026-01-01 00:00:00^assigned_toISEMPTY^ORDERBYDESCnumber',
    );
  });

  it.each(['1^ORDERBYnumber', '1^NQstate=7', '1\n2'])('refuses a value that would add a condition: %j', (is) => {
    expect(() => find([{ field: 'state', is }])).toThrow(/must not contain/);
  });

  it.each(['javascript:gs.getUserID()', ' JavaScript:1'])('refuses a value that ServiceNow would run: %j', (is) => {
    expect(() => find([{ field: 'state', is }])).toThrow(/must not begin with javascript/);
    expect(() => find([{ field: 'state', in: ['1', is] }])).toThrow(/must not begin with javascript/);
  });

  it('refuses records that do not meet a condition, which ServiceNow has ignored', async () => {
    const row = { sys_id: SYS_ID, number: 'INC1', state: '7' };
    const { found } = find([{ field: 'state', is: '1' }], [row]);
    await expect(found).rejects.toMatchObject({
      ...REFUSED,
      message: expect.stringContaining('ignored the condition on state'),
    });
    const unknown = find([{ field: 'no_such_column', atLeast: '1' }], [row]);
    await expect(unknown.found).rejects.toMatchObject({
      ...REFUSED,
      message: expect.stringContaining('no_such_column'),
    });
  });

  it('leaves out records that would make the output too large, and says so', async () => {
    const rows = Array.from({ length: 20 }, () => ({ sys_id: SYS_ID, number: 'x'.repeat(5_000), state: '1' }));
    const { output } = await find([{ field: 'state', is: '1' }], rows).found;
    expect(output).toMatchObject({ total: 20, truncated: true });
    expect(Buffer.byteLength(JSON.stringify(output))).toBeLessThan(64 * 1024);
  });
});

describe('the record tools', () => {
  const other = { table: 'sys_user', fields: { active: 'true' } };

  it('refuse a table that the connection does not allow, before anything is sent', async () => {
    const requests = returning([]);
    const refused = { ...REFUSED, message: expect.stringContaining('sys_user is not in allowedTables') };
    await expect(createRecord.perform(createRecord.parse(other), context)).rejects.toMatchObject(refused);
    await expect(createRecord.probe?.(createRecord.parse(other), context)).rejects.toMatchObject(refused);
    const update = updateAnyRecord.parse({ ...other, sysId: SYS_ID });
    await expect(updateAnyRecord.before?.(update, access)).rejects.toMatchObject(refused);
    const find = findRecord.parse({ table: 'sys_user', where: [{ field: 'active', is: true }], fields: ['name'] });
    await expect((async () => findRecord.perform(find, context))()).rejects.toMatchObject(refused);
    expect(requests).toEqual([]);
  });

  it('mark a new record, and report a mark or a field that ServiceNow did not store', async () => {
    const requests = returning({ sys_id: SYS_ID, number: 'PRB1', correlation_id: '', state: '', priority: '1' });
    const input = createRecord.parse({ table: 'problem', fields: { state: '101', priority: 1 } });
    expect(await createRecord.perform(input, context)).toMatchObject({
      incomplete: expect.stringContaining('did not set state, correlation_id'),
      reversal: { irreversible: expect.any(String) },
    });
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({ state: '101', priority: 1, correlation_id: 'countersign:m' });
  });

  it('does not know whether a record exists if ServiceNow hides or ignores the mark', async () => {
    const input = createRecord.parse({ table: 'problem', fields: { state: '101' } });
    const probe = async () => createRecord.probe?.(input, context);
    returning([], 1);
    await expect(probe()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    returning([{ sys_id: SYS_ID, number: 'PRB1' }]);
    await expect(probe()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    returning([], 0);
    expect(await probe()).toBeUndefined();
  });
});

it('markup in a column of the customer, which may be a journal, is disabled; other columns are written as they are', () => {
  const text = 'see [code]<b>x</b>[/code] @[Ana]';
  const fields = { u_notes: text, x_acme_log: text, short_description: text };
  const written = { u_notes: 'see [ code]<b>x</b>[ /code] @[ Ana]', short_description: text };
  const update = updateIncident.propose(updateIncident.parse({ sysId: SYS_ID, fields }), 'acme');
  expect(update.fields).toMatchObject({ ...written, x_acme_log: written.u_notes });
  const create = createRecord.propose(createRecord.parse({ table: 'problem', fields }), 'acme');
  expect(create.fields).toMatchObject(written);
});
