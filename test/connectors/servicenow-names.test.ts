import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { updateIncident } from '../../lambdas/connectors/servicenow/incidents.ts';
import { createRecord } from '../../lambdas/connectors/servicenow/records.ts';
import { seededSysId } from '../../local/simulators/servicenow/seed.ts';
import { type Outside, openSimulatedOutside, SYS_ID } from '../contracts/connectors/connectors-outside.ts';

let outside: Outside;
beforeEach(async () => {
  outside = await openSimulatedOutside();
});
afterEach(() => {
  vi.unstubAllGlobals();
  return outside.close();
});

const [DATABASE, DESK, ANA] = [seededSysId('Database'), seededSysId('Service Desk'), seededSysId('ana')];
const inspected = (fields: object) =>
  updateIncident.inspect?.(updateIncident.parse({ sysId: SYS_ID, fields }), outside.access.servicenow);

it('people see the names of groups, users and states, for the current and the new value', async () => {
  const path = `/api/now/table/incident/${SYS_ID}`;
  await outside.ask('servicenow', 'PATCH', path, { assignment_group: DESK });
  expect(await inspected({ assignment_group: DATABASE, assigned_to: ANA, state: '2' })).toEqual({
    before: { assignment_group: DESK, assigned_to: '', state: '1' },
    names: {
      assignment_group: { [DESK]: 'Service Desk', [DATABASE]: 'Database' },
      assigned_to: { [ANA]: 'Ana Ortiz' },
      state: { 1: 'New' },
    },
  });
});

it('a value whose name cannot be read is shown without one', async () => {
  await outside.ask('servicenow', 'GET', `/api/now/table/incident/${SYS_ID}`);
  const unknown = '0'.repeat(32);
  expect(await inspected({ assignment_group: unknown })).toEqual({ before: { assignment_group: '' } });
});

describe('a reference that is given by name', () => {
  const resolved = (fields: object) =>
    updateIncident.byName?.resolve({ sysId: SYS_ID, fields }, outside.access.servicenow);

  it('becomes the sys_id of the only record with this name; other values stay as they are', async () => {
    const fields = {
      assignment_group: 'Database',
      assigned_to: 'Ana Ortiz',
      caller_id: ANA,
      opened_by: '',
      state: '2',
    };
    expect(updateIncident.byName?.named({ sysId: SYS_ID, fields })).toEqual(['assignment_group', 'assigned_to']);
    expect(await resolved(fields)).toEqual({
      sysId: SYS_ID,
      fields: { assignment_group: DATABASE, assigned_to: ANA, caller_id: ANA, opened_by: '', state: '2' },
    });
  });

  it.each([
    ['Ana Ortis', 'no record of sys_user is named "Ana Ortis"; similar names: "Ana Ortiz". Correct the name'],
    ['Chlo Martin', 'no record of sys_user is named "Chlo Martin"; similar names: "Chloe Martin". Correct the name'],
    ['Zoe', 'no record of sys_user is named "Zoe". Correct the name, or give the sys_id'],
    ['', undefined],
  ])('%j is refused with similar names', async (assigned_to, message) => {
    if (message === undefined)
      expect(await resolved({ assigned_to })).toEqual({ sysId: SYS_ID, fields: { assigned_to } });
    else
      await expect(resolved({ assigned_to })).rejects.toMatchObject({
        code: 'INPUT_INVALID',
        message: expect.stringContaining(`assigned_to: ${message}`),
      });
  });

  it('is refused if records are hidden or the condition was ignored: then it may not be the only one', async () => {
    const answer = (result: object[]) =>
      vi.stubGlobal('fetch', async () => Response.json({ result }, { headers: { 'x-total-count': '1' } }));
    answer([]);
    await expect(resolved({ assigned_to: 'Ana Ortiz' })).rejects.toMatchObject({
      code: 'INPUT_INVALID',
      message: 'assigned_to: the credential may not read "Ana Ortiz" in sys_user; give the sys_id',
    });
    answer([{ sys_id: ANA, name: 'Somebody Else' }]);
    await expect(resolved({ assigned_to: 'Ana Ortiz' })).rejects.toMatchObject({ code: 'TARGET_REFUSED' });
  });

  it('is shown by its name on the approval of a record that does not exist yet', async () => {
    const input = createRecord.parse({ table: 'problem', fields: { assignment_group: DATABASE, state: '101' } });
    expect(await createRecord.inspect?.(input, outside.access.servicenow)).toEqual({
      names: { assignment_group: { [DATABASE]: 'Database' } },
    });
  });
});
