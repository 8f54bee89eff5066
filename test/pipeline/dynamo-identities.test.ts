import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { Person } from '../../lambdas/people/people.ts';
import { DynamoDefinitions } from '../../lambdas/pipeline/dynamo-definitions.ts';
import { toItem } from '../../lambdas/run/dynamo/dynamo-items.ts';
import { personKey } from '../../lambdas/run/dynamo/dynamo-keys.ts';
import { DynamoRows } from '../../lambdas/run/dynamo/dynamo-rows.ts';
import { openRunTable } from '../contracts/run-store/run-table.ts';
import { byTest } from '../fakes/by-test.ts';

const SUBJECT = 'oidc:https://login.example.com#s';
const EMAIL = 'email:ana@example.com';

let run: Awaited<ReturnType<typeof openRunTable>>;
let definitions: DynamoDefinitions;
let requests: string[] = [];
let tenant = 'identities-0';
let tenants = 0;

beforeAll(async () => {
  run = await openRunTable();
  definitions = new DynamoDefinitions(run.client, run.table);
  run.client.middlewareStack.add(
    (next, { commandName = '' }) =>
      (args) => {
        requests.push(commandName.replace('Command', ''));
        return next(args);
      },
    { name: 'countRequests' },
  );
});
afterAll(() => run.close());
beforeEach(() => {
  tenants += 1;
  tenant = `identities-${tenants}`;
});

const person = (id: string, ...identities: string[]) => Person.parse({ id, name: id, role: 'member', identities });
const save = (each: Person) => definitions.savePerson(tenant, each, byTest());
/** As an earlier release did: the person only. */
const saveAlone = (each: Person) =>
  new DynamoRows(run.client, run.table).save(toItem(personKey(tenant, each.id), each));
async function find(...identities: [string, ...string[]]) {
  requests = [];
  const found = await definitions.personWithIdentity(tenant, identities);
  return { person: found?.id, requests };
}
const READ_TWO_ROWS = ['GetItem', 'GetItem'];

it('a person who signs in costs two reads, however many people there are', async () => {
  for (let index = 0; index < 5; index += 1) await save(person(`p${index}`));
  await save(person('ana', SUBJECT));
  expect(await find(SUBJECT)).toEqual({ person: 'ana', requests: READ_TWO_ROWS });
});

it('a person of an earlier release, or with an email address only, is searched once', async () => {
  await saveAlone(person('ana', EMAIL));
  expect(await find(SUBJECT, EMAIL)).toEqual({ person: 'ana', requests: ['GetItem', 'Query', 'PutItem'] });
  expect(await find(SUBJECT, EMAIL)).toEqual({ person: 'ana', requests: READ_TWO_ROWS });
  // Without the email address, the subject alone is nobody's identity.
  expect((await find(SUBJECT)).person).toBeUndefined();
});

it('a row that names a person without the identity is not believed, and corrected', async () => {
  await save(person('ana', SUBJECT));
  await saveAlone(person('ana'));
  await saveAlone(person('ben', SUBJECT));
  expect((await find(SUBJECT)).person).toBe('ben');
  expect((await find(SUBJECT)).requests).toEqual(READ_TWO_ROWS);
});

it('an identity whose row is outdated can be given to another person', async () => {
  await saveAlone(person('ana', EMAIL));
  await find(SUBJECT, EMAIL);
  // The row of the subject names Ana, who does not have it.
  await save(person('ben', SUBJECT));
  expect((await find(SUBJECT, EMAIL)).person).toBe('ben');
  await expect(save(person('cleo', SUBJECT))).rejects.toMatchObject({ code: 'CONFLICT' });
});

it('the next change of a person of an earlier release writes the rows of all their identities', async () => {
  const ana = person('ana', SUBJECT, EMAIL);
  await saveAlone(ana);
  await save({ ...ana, name: 'Anna' });
  await expect(save(person('ben', EMAIL))).rejects.toMatchObject({ code: 'CONFLICT' });
  expect(await find(SUBJECT)).toEqual({ person: 'ana', requests: READ_TWO_ROWS });
});

it('more identities than fit into one transaction are refused; the person with the most can be deleted', async () => {
  const many = (prefix: string) => Array.from({ length: 60 }, (_, index) => `github:${prefix}-${index}`);
  await save(person('ana', ...many('a')));
  const refused = save(person('ana', ...many('b')));
  await expect(refused).rejects.toMatchObject({
    code: 'INPUT_INVALID',
    message: expect.stringContaining('in several'),
  });
  const all = person('ana', ...many('a'), ...many('b').slice(0, 40));
  await save(all);
  await definitions.deletePerson(tenant, all, byTest());
  await save(person('ben', 'github:a-0', 'github:b-39'));
});
