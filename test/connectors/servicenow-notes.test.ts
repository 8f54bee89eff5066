import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Access, WriteContext } from '../../lambdas/connectors/connector.ts';
import { addWorkNote, getIncident, updateIncident } from '../../lambdas/connectors/servicenow/incidents.ts';
import { seededSysId } from '../../local/simulators/servicenow/seed.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { BASIC, openWorld, type World } from '../local/simulators/world.ts';

const SYS_ID = seededSysId('INC0010001');
const MARK = 'countersign:0123456789abcdef0123';
const input = addWorkNote.parse({ sysId: SYS_ID, note: 'seen' });

let world: World;
let performance: WriteContext;
beforeEach(async () => {
  world = await openWorld();
  const credential = { username: 'countersign', password: 'local' };
  const access: Access = { baseUrl: `${world.url}/_sim/servicenow`, instance: 'acme', credential };
  performance = { access, mark: MARK, openSince: STORY_BEGINS_AT };
});
afterEach(() => world.close());

const surprise = (kind: string, method: string, path: string) =>
  world.ask('POST', '/faults', { system: 'servicenow', kind: 'surprise', surprise: kind, method, path, times: 9 });
const forbid = (path: string) =>
  world.ask('POST', '/faults', { system: 'servicenow', kind: 'status', status: 403, method: 'GET', path, times: 9 });
const perform = () => addWorkNote.perform(input, performance);
const probe = async () => addWorkNote.probe?.(input, performance);
const writes = async () => (await world.calls('?system=servicenow&method=PATCH')).length;
const say = (work_notes: string) =>
  world.ask('PATCH', `/servicenow/api/now/table/incident/${SYS_ID}`, { work_notes }, BASIC);

const JOURNAL = 'sys_journal_field';
const ACTIVITY = 'sysparm_display_value=true';
const UNKNOWN = { code: 'OUTCOME_UNKNOWN', message: expect.stringContaining('does not show') };

describe('a work note', () => {
  it('is read from the journal after the write', async () => {
    expect(await perform()).toMatchObject({ response: { status: 200, journalEntry: expect.any(String) } });
    expect(await probe()).toMatchObject({ recovered: true, response: { journalEntry: expect.any(String) } });
  });

  it('that an ACL dropped is refused', async () => {
    await surprise('fields_dropped', 'PATCH', 'incident');
    const refused = {
      code: 'TARGET_REFUSED',
      retryable: false,
      message: expect.stringContaining('did not add the note'),
    };
    await expect(perform()).rejects.toMatchObject(refused);
    expect(await probe()).toBeUndefined();
  });

  it.each([
    ['is hidden in the journal', () => surprise('rows_hidden', 'GET', JOURNAL)],
    ['is in a journal that may not be read', () => forbid(JOURNAL)],
  ])('that %s is found in the field of the incident', async (_what, hide) => {
    await hide();
    expect(await perform()).toMatchObject({ output: { sysId: SYS_ID }, response: { status: 200 } });
    expect(await probe()).toMatchObject({ recovered: true });
  });

  it.each([
    ['rows hidden by an ACL', () => surprise('rows_hidden', 'GET', JOURNAL)],
    ['a journal that may not be read', () => forbid(JOURNAL)],
    ['a journal without its count', () => uncounted()],
  ])('has an unknown outcome with %s and a hidden field, whether it exists or not', async (_what, hide) => {
    await hide();
    await surprise('fields_hidden', 'GET', ACTIVITY);
    await expect(probe()).rejects.toMatchObject(UNKNOWN);
    await expect(perform()).rejects.toMatchObject(UNKNOWN);
    await expect(probe()).rejects.toMatchObject(UNKNOWN);
    expect(await writes()).toBe(1);
  });

  /** A response as a proxy may send it. */
  const uncounted = () =>
    world.ask('POST', '/faults', {
      system: 'servicenow',
      kind: 'other_body',
      path: JOURNAL,
      body: { result: [] },
      times: 9,
    });

  it('that the journal does not list has an unknown outcome if the incident hides its notes', async () => {
    await surprise('fields_hidden', 'GET', ACTIVITY);
    await expect(probe()).rejects.toMatchObject(UNKNOWN);
    await perform();
    expect(await probe()).toMatchObject({ recovered: true });
  });

  it('of another author is not the marked note if ServiceNow ignores the clause with the mark', async () => {
    await say('something else');
    await say(`quoted: [${MARK}], they say`);
    await surprise('clause_ignored', 'GET', JOURNAL);
    expect(await probe()).toBeUndefined();
    await perform();
    expect(await probe()).toMatchObject({ recovered: true });
  });

  it('among more notes than are listed is not decided by the journal', async () => {
    for (let count = 0; count < 12; count += 1) await say(`note ${count}`);
    await surprise('clause_ignored', 'GET', JOURNAL);
    await surprise('fields_hidden', 'GET', ACTIVITY);
    await expect(probe()).rejects.toMatchObject(UNKNOWN);
  });

  it('that was sent and cannot be read has an unknown outcome', async () => {
    await world.ask('POST', '/faults', { system: 'servicenow', kind: 'status', status: 503, method: 'GET' });
    await expect(perform()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(await writes()).toBe(1);
  });
});

describe('fields of an incident', () => {
  const update = updateIncident.parse({ sysId: SYS_ID, fields: { state: '2' } });
  const updated = async () => {
    const before = await updateIncident.before?.(update, performance.access);
    return updateIncident.perform(update, { ...performance, before });
  };

  it('that are dropped from a write are refused', async () => {
    await surprise('fields_dropped', 'PATCH', 'incident');
    await expect(updated()).rejects.toMatchObject({ code: 'TARGET_REFUSED', retryable: false });
  });

  it('that are hidden after a write leave its outcome unknown', async () => {
    await surprise('fields_hidden', 'PATCH', 'incident');
    await expect(updated()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  });

  it('that are hidden are refused before anything is written', async () => {
    await surprise('fields_hidden', 'GET', 'incident');
    const refused = { code: 'TARGET_REFUSED', retryable: false };
    await expect(updated()).rejects.toMatchObject(refused);
    const get = getIncident.parse({ sysId: SYS_ID, fields: ['state'] });
    await expect(getIncident.perform(get, performance)).rejects.toMatchObject(refused);
    expect(await writes()).toBe(0);
  });
});
