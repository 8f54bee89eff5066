import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Person } from '../../../lambdas/people/people.ts';
import type { Change } from '../../../lambdas/pipeline/definition-changes.ts';
import { piped } from '../../cli/command-line.ts';
import { ACME_KEY } from '../harness/host-client.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

const OSCARS_KEY = 'local-operator-key';
let host: TestHost;
beforeAll(async () => {
  host = await startTestHost();
});
afterAll(() => host.stop());

const ask = <T>(method: string, path: string, body?: unknown, key = ACME_KEY) =>
  host.request<T>(method, `/api/v1${path}`, {
    headers: { 'x-api-key': key },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

it('a deleted person’s key has no rights from the next request on, and the history shows the deletion', async () => {
  expect((await ask('GET', '/runs', undefined, OSCARS_KEY)).status).toBe(200);
  expect((await ask('DELETE', '/people/oscar')).status).toBe(200);
  expect((await ask('GET', '/runs', undefined, OSCARS_KEY)).status).toBe(401);
  expect((await ask('GET', '/dead-letters', undefined, OSCARS_KEY)).status).toBe(401);
  // The id is not used again, or the key would work for the next person.
  expect((await ask('PUT', '/people/oscar', { name: 'Oscar', role: 'operator' })).status).toBe(422);
  const { body } = await ask<{ changes: Change[] }>('GET', '/changes');
  expect(body.changes[0]).toMatchObject({
    actor: 'olivia',
    kind: 'person',
    name: 'oscar',
    action: 'deleted',
    before: { role: 'operator' },
    after: null,
  });
  // Definitions from the seed are in the history too, API keys without the keys.
  const { body: all } = await ask<{ changes: Change[] }>('GET', '/changes?limit=100');
  expect(new Set(all.changes.map(({ kind }) => kind))).toEqual(
    new Set(['person', 'connection', 'automation', 'configuration', 'workflow', 'api_key']),
  );
  expect(JSON.stringify(all)).not.toContain('local-owner-key');
});

it('the command line changes people, shows delegates, and lists the changes', async () => {
  const put = await ask<Person>('PUT', '/people/dora', { name: 'Dora', role: 'approver', tier: 'high' });
  expect(put.body.rights).toMatchObject({ changedBy: 'olivia', dependsOn: ['olivia'] });
  const says = async (...words: string[]) => (await piped([...words, '--url', host.url])).stdout;
  expect(await says('people', 'show', 'dora')).toMatch(/not for writes of olivia/);
  expect(await says('people', 'delegates', 'dora', '--add', 'chloe')).toMatch(/chloe/);
  expect(await says('people', 'list')).toMatch(/dora.*approver up to high/);
  expect(await says('people', 'delete', 'dora')).toMatch(/deleted dora/);
  expect(await says('changes', 'list')).toMatch(/olivia\s+person dora deleted/);
  expect(await says('changes', 'pending', '--json')).toContain('"pending": []');
});
