import { expect, it } from 'vitest';
import { findOperation } from '../../lambdas/connectors/registry.ts';

const SYS_ID = 'a'.repeat(32);
const problem = (tool: string, input: unknown): string => {
  try {
    findOperation(tool)?.parse(input);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('the input was taken');
};

it.each<[string, unknown, string]>([
  ['a field by its name', { sysId: SYS_ID, fields: { state: [1] } }, 'fields.state: '],
  ['an input by its name', { sysId: 'nobody', fields: { state: '1' } }, 'sysId: a ServiceNow sys_id is 32 hex'],
  ['a property that is not known', { sysId: SYS_ID, fields: { state: '1' }, filds: {} }, 'has no field filds'],
])('the error of an invalid input names %s', (_what, input, said) => {
  expect(problem('servicenow.incident.update', input)).toContain(said);
});

it.each<[string, unknown]>([
  ['a value', { sysId: 'Ana Canary', fields: { state: '1' } }],
  ['a field name that is free text', { sysId: SYS_ID, fields: { 'Ana Canary': '1' } }],
  ['a name below it', { sysId: SYS_ID, fields: { 'ana@canary.example': ['Ana Canary'] } }],
  ['a property that is not known', { sysId: SYS_ID, fields: { state: '1' }, 'Ana Canary': 1 }],
])('the error of an invalid input does not contain %s', (_what, input) => {
  expect(problem('servicenow.incident.update', input)).not.toMatch(/canary/i);
});
