import { beforeEach, expect, it } from 'vitest';
import { eraseChanges } from '../../lambdas/setup/erase-changes.ts';
import { ANA } from '../approval/people.ts';
import { byTest } from '../fakes/by-test.ts';
import { CountingIds } from '../fakes/counting-ids.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';

const clock = new FakeClock('2026-03-04T00:00:00.000Z');
let definitions: MemoryDefinitions;
beforeEach(async () => {
  definitions = new MemoryDefinitions();
  await definitions.savePerson('acme', ANA, byTest({ changeId: 'chg_old', at: '2026-03-02T00:00:00.000Z' }));
  const renamed = { ...ANA, name: 'Anna' };
  await definitions.savePerson('acme', renamed, byTest({ changeId: 'chg_new', at: '2026-03-02T00:00:00.001Z' }));
});

const erase = (...changeIds: string[]) =>
  eraseChanges({ definitions, clock, ids: new CountingIds() }, { tenant: 'acme', changeIds, reason: 'request 4711' });
const history = async () => (await definitions.changes('acme', { limit: 10 })).items;

it('deletes who, what, values and salt of a change, and records that the operator did', async () => {
  expect(await erase('chg_old', 'chg_old')).toEqual({ erased: ['chg_old'] });
  const [erasure, other, erased] = await history();
  expect(erased).toEqual({
    changeId: 'chg_old',
    at: '2026-03-02T00:00:00.000Z',
    kind: 'person',
    action: 'created',
    actor: '(erased)',
    name: '(erased)',
    before: null,
    after: null,
  });
  expect(other).toMatchObject({ changeId: 'chg_new', name: 'ana' });
  expect(erasure).toMatchObject({ actor: 'operator', kind: 'history', name: 'chg_old', reason: 'request 4711' });
});

it.each([
  ['is not signed yet', ['chg_old', 'chg_new'], 'Try again after 2026-03-04T00:00:00.001Z'],
  ['does not exist', ['chg_old', 'chg_other'], 'acme has no change chg_other'],
])('erases nothing if one of the changes %s', async (_why, ids, message) => {
  const before = await history();
  await expect(erase(...ids)).rejects.toThrow(message);
  expect(await history()).toEqual(before);
});
