import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DynamoDBClient, GetItemCommand, PutItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import { closeDays } from '../../../lambdas/evidence/daily-log/close-days.ts';
import { daysLater, logDocumentKey } from '../../../lambdas/evidence/daily-log/daily-log.ts';
import { DynamoDailyLog } from '../../../lambdas/evidence/daily-log/dynamo-daily-log.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { docOf, type Item, itemBytes, toItem } from '../../../lambdas/run/dynamo/dynamo-items.ts';
import * as keys from '../../../lambdas/run/dynamo/dynamo-keys.ts';
import type { LogEntry } from '../../../lambdas/run/log-entry.ts';
import { SeededSigner } from '../../fakes/seeded-signer.ts';
import { peakMemoryMib } from '../peak-memory.ts';

/**
 * A separate process that closes two days of the largest size, the second time with the document and the signature of
 * another closer already stored, and prints its peak memory. Rows are created when they are read, so that only the closing
 * is measured.
 */
const [, , COUNT = '200000'] = process.argv;
const PAGE_BYTES = 1024 * 1024;
const [tenant, firstDay] = ['acme', '2026-03-01'];

function entry(day: string, index: number): LogEntry {
  const runId = `run_${day.replaceAll('-', '')}${index.toString(16).padStart(24, '0')}`;
  // Not in the order of the run ids: the closer has to sort.
  const sealedAt = new Date(Date.parse(day) + ((index * 7_919) % 86_400) * 1000).toISOString();
  return { runId, sha256: hash(2 * index), head: hash(2 * index + 1), count: 7, sealedAt };
}

/** As long as a hash, and another one for each number. A real one would take longer than what the closer does with it. */
const hash = (number: number) => number.toString(16).padStart(8, '0').repeat(8);

const saved = new Map<string, Item>();
const client = {
  async send(command: unknown) {
    if (command instanceof PutItemCommand) saved.set(command.input.Item?.pk?.S ?? '', command.input.Item as Item);
    if (command instanceof GetItemCommand) return { Item: saved.get(command.input.Key?.pk?.S ?? '') };
    return command instanceof QueryCommand ? page(command) : {};
  },
};

function page({ input }: QueryCommand) {
  const [, , day = ''] = (input.ExpressionAttributeValues?.[':pk']?.S ?? '').split('#');
  const Items: Item[] = [];
  let index = Number(
    input.ExclusiveStartKey?.next?.N ?? (day >= firstDay && day <= daysLater(firstDay, 1) ? 0 : COUNT),
  );
  for (let bytes = 0, bytesEach = 0; bytes < PAGE_BYTES && index < Number(COUNT); index += 1) {
    const made = entry(day, index);
    const item = toItem(keys.logEntryKey(tenant, day, made.runId), made);
    Items.push(item);
    // All have the same size.
    bytesEach ||= itemBytes(item);
    bytes += bytesEach;
  }
  return { Items, ...(index < Number(COUNT) && { LastEvaluatedKey: marshall({ next: index }) }) };
}

/** On disk: the contents of a bucket do not count as memory of the closer. */
const folder = mkdtempSync(join(tmpdir(), 'largest-day-'));
const fileOf = (key: string) => join(folder, key.replaceAll('/', '_'));
const store = {
  putOnce: async (key: string, content: Buffer) => {
    if (existsSync(fileOf(key))) return false;
    writeFileSync(fileOf(key), content);
    return true;
  },
  get: async (key: string) => readFileSync(fileOf(key)),
};
const quiet = () => {};
let now = Date.parse('2026-03-02T01:00:00.000Z');
const closer = {
  rows: new DynamoDailyLog(client as unknown as DynamoDBClient, 'runs'),
  store,
  signer: new SeededSigner(),
  clock: { now: () => now },
  log: { info: quiet, warn: quiet, error: quiet },
};

const closed = await closeDays(closer, tenant);
const afterFirst = saved.get(keys.lastClosedLogKey(tenant).pk) as Item;
now = Date.parse('2026-03-03T01:00:00.000Z');
closed.push(...(await closeDays(closer, tenant)));
const afterSecond = docOf<{ sha256: string }>(saved.get(keys.lastClosedLogKey(tenant).pk) as Item);
// As if the closer had crashed before it recorded that the second day is closed.
saved.set(keys.lastClosedLogKey(tenant).pk, afterFirst);
const again = await closeDays(closer, tenant);
const peakMib = peakMemoryMib();
const document = await store.get(logDocumentKey(tenant, '2026-03-02'));
rmSync(folder, { recursive: true });
console.log(
  JSON.stringify({
    closed: [...closed, ...again],
    bytes: document.length,
    entries: document.toString().split('"runId"').length - 1,
    isRecorded: sha256Hex(document) === afterSecond.sha256,
    peakMib,
  }),
);
