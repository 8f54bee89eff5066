import { join } from 'node:path';
import { DynamoDBClient, paginateScan, TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { afterAll, beforeAll, describe } from 'vitest';
import { canonicalJson } from '../../../lambdas/run/canonical-json.ts';
import { HOST_GROUPS, testFile } from '../../host-groups.ts';
import { shareHost, startTestHost, type TestHost } from './test-host.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
/** Longer than a warm function caches anything that can change. */
const FORGOTTEN_AFTER_MS = 61 * 60_000;
/** DynamoDB's limit for a transaction. */
const WRITTEN_AT_ONCE = 100;

type Row = Record<string, unknown> & { pk: string; sk: string };

/** Rows that nobody deletes. */
const STAYS: ((row: Row) => boolean)[] = [
  // A version never changes, so functions cache it for ever: nobody may publish another one with its number.
  ({ sk }) => sk.startsWith('WORKFLOW#'),
  // Days that are closed: their objects stay, too.
  ({ pk }) => pk.startsWith('LOG#') || pk.startsWith('CHANGE#'),
];

/**
 * Runs test files one after the other on one host, which saves the start of a host and of its function threads for each file.
 * Each file begins with the rows of a new host, without faults and without calls; the clock is some hours ahead. What remains of
 * the files before it: threads, log lines, objects, executions, and workflow versions, so names of workflows differ between files.
 */
export function onOneHost(group: string): void {
  let host: TestHost;
  let seeded: Map<string, Row>;
  beforeAll(async () => {
    host = await startTestHost();
    seeded = await rowsOf(host);
  });
  afterAll(() => host.stop());
  for (const name of HOST_GROUPS[group] ?? []) {
    describe(name, async () => {
      beforeAll(() => shareHost(host));
      // After the hooks of the file, because it is registered before them.
      afterAll(async () => {
        shareHost(undefined);
        await startAgain(host, seeded);
      });
      await import(join(ROOT, testFile(name)));
    });
  }
}

async function startAgain(host: TestHost, seeded: Map<string, Row>): Promise<void> {
  await host.idle();
  await host.clearFaults();
  for (const path of ['/_sim/faults', '/_sim/calls']) await host.request('DELETE', path);
  const rows = await rowsOf(host);
  const client = new DynamoDBClient(host.clientConfig());
  const TableName = host.tableName;
  const added = [...rows.values()].filter((row) => !seeded.has(keyOf(row)) && !STAYS.some((stays) => stays(row)));
  const changed = [...seeded].filter(([key, row]) => canonicalJson(row) !== canonicalJson(rows.get(key) ?? null));
  const writes = [
    ...added.map(({ pk, sk }) => ({ Delete: { TableName, Key: marshall({ pk, sk }) } })),
    ...changed.map(([, row]) => ({ Put: { TableName, Item: marshall(row) } })),
  ];
  for (let at = 0; at < writes.length; at += WRITTEN_AT_ONCE) {
    await client.send(new TransactWriteItemsCommand({ TransactItems: writes.slice(at, at + WRITTEN_AT_ONCE) }));
  }
  client.destroy();
  await host.advance(FORGOTTEN_AFTER_MS);
  await host.idle();
  await host.resetRequests();
}

const keyOf = ({ pk, sk }: Row) => `${pk} ${sk}`;

async function rowsOf(host: TestHost): Promise<Map<string, Row>> {
  const client = new DynamoDBClient(host.clientConfig());
  const found = new Map<string, Row>();
  for await (const { Items = [] } of paginateScan({ client }, { TableName: host.tableName })) {
    for (const row of Items.map((item) => unmarshall(item) as Row)) found.set(keyOf(row), row);
  }
  client.destroy();
  return found;
}
