import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
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

const GONE_WITHIN_MS = 60_000;
const POLL_EVERY_MS = 5;

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
  running = await startDynamoDb({ dataFolder: folder.path, log: () => {}, env: {} });
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
  expect((await startDynamoDb({ dataFolder: folder.path, log: () => {}, env })).url).toBe('http://127.0.0.1:8000');
});

it('reports why the engine does not start', async () => {
  const env = { DYNOXIDE_BIN: '/nonexistent/dynoxide' };
  await expect(startDynamoDb({ dataFolder: folder.path, log: () => {}, env })).rejects.toThrow(
    /did not start.*dynoxide/,
  );
});

it('ends with a killed host, and the next host waits for it', async () => {
  const program = `
    import { startDynamoDb } from ${JSON.stringify(join(REPOSITORY, 'local/dynamodb/dynamodb.ts'))};
    const { url } = await startDynamoDb({ dataFolder: ${JSON.stringify(folder.path)}, log: () => {}, env: {} });
    console.log(url);
    setInterval(() => {}, 1000);`;
  const host = spawn(process.execPath, ['--input-type=module-typescript', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(host.stdout, 'data')) as [Buffer];
  const port = Number(new URL(line.toString().trim()).port);
  const engine = Number(readFileSync(join(folder.path, 'dynamodb.pid'), 'utf8'));
  expect(await accepts(port)).toBe(true);

  host.kill('SIGKILL');
  const url = await start();
  await until(() => !isAlive(engine));
  await createTables(url, stack);
});

it('is not shared by two hosts', async () => {
  await start();
  const second = startDynamoDb({ dataFolder: folder.path, log: () => {}, env: {}, waitForPreviousMs: 50 });
  await expect(second).rejects.toThrow(/another local host is using/);
});

it('leaves no process when it stops', async () => {
  await start();
  const engine = Number(readFileSync(join(folder.path, 'dynamodb.pid'), 'utf8'));
  await running?.stop();
  expect(isAlive(engine)).toBe(false);
});

/** Another program in place of the engine. */
function engineOf(program: string) {
  const path = join(folder.path, 'engine');
  writeFileSync(path, `#!${process.execPath}\n${program}`, { mode: 0o755 });
  return { DYNOXIDE_BIN: path };
}
const LISTEN = `
  const port = process.argv[process.argv.indexOf('--port') + 1];
  require('node:net').createServer().listen(port, '127.0.0.1', () => console.log('listening on ' + port));`;

/** Refuses its first ports, as if they were taken meanwhile, and keeps count of its starts. */
const choosy = (refused: number) => `
  const starts = ${JSON.stringify(join(folder.path, 'starts'))};
  require('node:fs').appendFileSync(starts, process.argv[process.argv.indexOf('--port') + 1] + '\\n');
  if (require('node:fs').readFileSync(starts, 'utf8').trim().split('\\n').length <= ${refused}) {
    console.error('the port is taken');
    process.exitCode = 1;
  } else {${LISTEN}}`;
const portsTried = () => readFileSync(join(folder.path, 'starts'), 'utf8').trim().split('\n');

it('starts on another port when the first is in use', async () => {
  running = await startDynamoDb({ dataFolder: folder.path, log: () => {}, env: engineOf(choosy(2)) });
  expect(portsTried()).toHaveLength(3);
  expect(running.url).toBe(`http://127.0.0.1:${portsTried().at(-1)}`);
});

it('fails after three ports, with the output of the engine', async () => {
  const started = startDynamoDb({ dataFolder: folder.path, log: () => {}, env: engineOf(choosy(3)) });
  await expect(started).rejects.toThrow(/did not start: it exited with 1: the port is taken/);
  expect(portsTried()).toHaveLength(3);
});

it('leaves no process when the engine does not stop on request', async () => {
  const env = engineOf(`process.on('SIGTERM', () => {});${LISTEN}`);
  running = await startDynamoDb({ dataFolder: folder.path, log: () => {}, env, stopWithinMs: 50 });
  const engine = Number(readFileSync(join(folder.path, 'dynamodb.pid'), 'utf8'));
  await running.stop();
  expect(isAlive(engine)).toBe(false);
});

async function until(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + GONE_WITHIN_MS;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`not within ${GONE_WITHIN_MS} ms`);
    await delay(POLL_EVERY_MS);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
