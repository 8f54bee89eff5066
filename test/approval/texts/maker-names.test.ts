import { expect, it } from 'vitest';
import { makerNames } from '../../../lambdas/approval/texts/maker-names.ts';

const [OPENER, CALLER] = ['a'.repeat(32), 'c'.repeat(32)];
const MAKERS = ['ana', 'servicenow:ana', `servicenow:${OPENER}`];
const payload = (record: Record<string, string | null>) => ({ source: 'servicenow' as const, payload: { record } });

it.each([
  [
    'a name in the payload',
    { opened_by: OPENER, 'opened_by.name': 'Ana Ortiz', 'opened_by.user_name': 'ana' },
    'Ana Ortiz',
  ],
  ['a user name in the payload', { opened_by: OPENER, 'opened_by.name': '', 'opened_by.user_name': ' ana ' }, 'ana'],
  ['the name of the same user in another column', { caller_id: OPENER, 'caller_id.name': 'Ana Ortiz' }, 'Ana Ortiz'],
])('a maker with a sys_id has %s', (_what, record, name) => {
  expect(makerNames(payload(record), MAKERS)).toEqual({ [`servicenow:${OPENER}`]: name });
});

it('a name that was read for the approval is used too', () => {
  const read = { assigned_to: { [OPENER]: 'Ana Ortiz', [CALLER]: 'Chloe Martin' } };
  expect(makerNames(payload({}), MAKERS, read)).toEqual({ [`servicenow:${OPENER}`]: 'Ana Ortiz' });
});

it.each([
  ['the name of another user', payload({ caller_id: CALLER, 'caller_id.name': 'Chloe Martin' })],
  ['no name', payload({ opened_by: OPENER, 'opened_by.name': null })],
  ['a name that is too long', payload({ opened_by: OPENER, 'opened_by.name': 'x'.repeat(101) })],
  ['no record', { source: 'servicenow' as const, payload: null }],
  [
    'the payload of another system',
    { ...payload({ opened_by: OPENER, 'opened_by.name': 'x' }), source: 'github' as const },
  ],
])('%s gives none', (_what, trigger) => {
  expect(makerNames(trigger, MAKERS)).toBeUndefined();
});
