import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  DescribeTableCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
} from '@aws-sdk/client-dynamodb';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type DynamoDb, startDynamoDb } from '../../../local/dynamodb/dynamodb.ts';
import { createTables } from '../../../local/dynamodb/tables.ts';
import { resolveTemplate } from '../../../local/template/template.ts';
import { REPOSITORY, temporaryFolder } from './small-host.ts';
import { runsTable, template } from './small-template.ts';

let folder: ReturnType<typeof temporaryFolder>;
let running: DynamoDb | undefined;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(async () => {
  await running?.stop();
  running = undefined;
  folder.remove();
});

const start = async () => {
  running = await startDynamoDb(folder.path, {});
  return running.url;
};
const stack = resolveTemplate(template(runsTable), { stackName: 'Test' });
const clientOf = (endpoint: string) =>
  new DynamoDBClient({ endpoint, region: 'us-east-1', credentials: { accessKeyId: 'local', secretAccessKey: 'x' } });

it('creates the tables of the template with keys and indexes, and keeps items across a restart', async () => {
  const url = await start();
  await createTables(url, stack);
  const { Table } = await clientOf(url).send(new DescribeTableCommand({ TableName: 'Test-Runs' }));
  expect(Table?.KeySchema).toEqual(runsTable.Runs?.Properties?.KeySchema);
  expect(Table?.GlobalSecondaryIndexes?.map(({ IndexName }) => IndexName)).toEqual(['byOwner']);
  const Item = { pk: { S: 'stored' }, sk: { S: '1' } };
  await clientOf(url).send(new PutItemCommand({ TableName: 'Test-Runs', Item }));
  await running?.stop();

  const again = await start();
  await createTables(again, stack);
  expect((await clientOf(again).send(new GetItemCommand({ TableName: 'Test-Runs', Key: Item }))).Item).toEqual(Item);
});

it('adds an index that the template has and the stored table lacks, with the items that it has', async () => {
  const url = await start();
  const before = structuredClone(runsTable);
  if (before.Runs?.Properties) {
    delete before.Runs.Properties.GlobalSecondaryIndexes;
    before.Runs.Properties.AttributeDefinitions = ['pk', 'sk'].map((name) => ({
      AttributeName: name,
      AttributeType: 'S',
    }));
  }
  await createTables(url, resolveTemplate(template(before), { stackName: 'Test' }));
  const Item = { pk: { S: 'stored' }, sk: { S: '1' }, owner: { S: 'ana' } };
  await clientOf(url).send(new PutItemCommand({ TableName: 'Test-Runs', Item }));
  await createTables(url, stack);
  const { Items } = await clientOf(url).send(
    new QueryCommand({
      TableName: 'Test-Runs',
      IndexName: 'byOwner',
      KeyConditionExpression: '#owner = :owner',
      ExpressionAttributeNames: { '#owner': 'owner' },
      ExpressionAttributeValues: { ':owner': { S: 'ana' } },
    }),
  );
  expect(Items).toEqual([expect.objectContaining({ pk: { S: 'stored' } })]);
});

it('refuses stored tables that differ from the template, and names the option to delete them', async () => {
  const url = await start();
  await createTables(url, stack);
  const changed = structuredClone(runsTable);
  if (changed.Runs?.Properties) delete changed.Runs.Properties.GlobalSecondaryIndexes;
  const other = resolveTemplate(template(changed), { stackName: 'Test' });
  await expect(createTables(url, other)).rejects.toThrow(/Test-Runs has other keys or indexes.*--fresh/);
});

it('uses the DynamoDB that the environment names', async () => {
  const env = { AWS_ENDPOINT_URL_DYNAMODB: 'http://127.0.0.1:8000' };
  expect((await startDynamoDb(folder.path, env)).url).toBe('http://127.0.0.1:8000');
});

it('releases its file when the host is killed, with every write that was acknowledged', async () => {
  const program = `
    import { startDynamoDb } from ${JSON.stringify(join(REPOSITORY, 'local/dynamodb/dynamodb.ts'))};
    const { url } = await startDynamoDb(${JSON.stringify(folder.path)}, {});
    console.log(url);`;
  const host = spawn(process.execPath, ['--input-type=module-typescript', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(host.stdout, 'data')) as [Buffer];
  const killed = line.toString().trim();
  await createTables(killed, stack);
  const Item = { pk: { S: 'stored' }, sk: { S: '1' } };
  await clientOf(killed).send(new PutItemCommand({ TableName: 'Test-Runs', Item }));
  host.kill('SIGKILL');
  await once(host, 'exit');

  const url = await start();
  expect((await clientOf(url).send(new GetItemCommand({ TableName: 'Test-Runs', Key: Item }))).Item).toEqual(Item);
});

it('is not shared by two hosts', async () => {
  await start();
  const program = `
    import { startDynamoDb } from ${JSON.stringify(join(REPOSITORY, 'local/dynamodb/dynamodb.ts'))};
    await startDynamoDb(${JSON.stringify(folder.path)}, {});`;
  const second = spawnSync(process.execPath, ['--input-type=module-typescript', '-e', program], { encoding: 'utf8' });
  expect(second.stderr).toContain(`another local host is using ${folder.path}`);
});

it('refuses the file of an earlier version, and names the option to delete it', async () => {
  const earlier = new DatabaseSync(join(folder.path, 'dynamodb.sqlite'));
  earlier.exec('CREATE TABLE _tables (table_name TEXT)');
  earlier.close();
  await expect(start()).rejects.toThrow(/an earlier version of Countersign wrote .*--fresh/);
});
