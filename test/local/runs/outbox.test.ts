import { DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LOGGED } from '../../../lambdas/entry/environment.ts';
import { dueIndexKey, outboxKey } from '../../../lambdas/run/dynamo/dynamo-keys.ts';
import { ACME_KEY, type Answer, GLOBEX_KEY } from '../harness/host-client.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

let host: TestHost;
beforeAll(async () => {
  host = await startTestHost();
});
afterAll(() => host.stop());

interface Stuck {
  entries: { id: string; failed: { reason: string } | null }[];
}

const redrive = (key: string, dryRun: boolean): Promise<Answer<Stuck>> =>
  host.request('POST', '/api/v1/outbox/redrive', {
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ dryRun }),
  });

/** An entry that another version wrote, due in the first shard since long ago. */
async function unknownEntry(tenant: string): Promise<string> {
  const id = `${tenant}.run_00000001.bake_a_cake`;
  const doc = {
    id,
    kind: 'bake_a_cake',
    tenant,
    runId: 'run_00000001',
    attempts: 0,
    dueAt: '2026-01-01T00:00:00.000Z',
  };
  const client = new DynamoDBClient(host.clientConfig());
  const due = { dueShard: dueIndexKey(0), dueAt: doc.dueAt };
  const Item = marshall({ ...outboxKey(id), doc: JSON.stringify(doc), attempts: 0, ...due });
  await client.send(new PutItemCommand({ TableName: host.tableName, Item }));
  client.destroy();
  return id;
}

it('6.7 an outbox entry of an unknown kind fails at once and for good, status shows it, and an operator of its tenant can redrive it', async () => {
  const id = await unknownEntry('acme');
  const alarms = () => host.log.filter((line) => line.includes(LOGGED.outboxEntryStuck)).length;
  await host.sweep();
  await host.sweep();
  expect(alarms()).toBe(1);
  const stuck = [{ id, failed: { reason: 'unknown kind' } }];
  const listed = async (key = ACME_KEY) => (await redrive(key, true)).body.entries;
  expect(await listed()).toMatchObject(stuck);
  expect((await host.api('/status')).text).toContain('1 outbox entry is stuck');
  expect((await host.api('/status', GLOBEX_KEY)).text).not.toContain('is stuck');
  expect(await listed(GLOBEX_KEY)).toEqual([]);
  expect((await redrive('local-auditor-key', false)).status).toBe(403);
  expect(await redrive('local-operator-key', false)).toMatchObject({ status: 202, body: { entries: stuck } });
  expect(await listed()).toEqual([]);
  // Still unknown: it is tried again, and fails again.
  await host.sweep();
  expect(alarms()).toBe(2);
  expect(await listed()).toMatchObject(stuck);
});
