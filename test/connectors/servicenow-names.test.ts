import { afterEach, beforeEach, expect, it } from 'vitest';
import { updateIncident } from '../../lambdas/connectors/servicenow/incidents.ts';
import { seededSysId } from '../../local/simulators/servicenow/seed.ts';
import { type Outside, openSimulatedOutside, SYS_ID } from '../contracts/connectors-outside.ts';

let outside: Outside;
beforeEach(async () => {
  outside = await openSimulatedOutside();
});
afterEach(() => outside.close());

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
