import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib';
import { type AttributeValue, DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { REGION } from '../../local/aws/aws.ts';
import { startDynamoDb } from '../../local/dynamodb/dynamodb.ts';
import { createTables, ENGINE_ACCESS_KEY_ID, tablesOf } from '../../local/dynamodb/tables.ts';
import type { ResolvedStack } from '../../local/template/template.ts';

/** What a host of the previous release stored, and what the test must know of it. */
export interface Fixture {
  /** The commit that wrote it. */
  release: string;
  /** The time of its host when it was stopped. */
  stoppedAtMs: number;
  /** Run ids by what the run was doing, and other names that the test uses. */
  names: Record<string, string>;
  /** The rows of the run table. */
  rows: Record<string, AttributeValue>[];
  /** The other databases of the host: executions, objects, messages, what the simulated systems have. */
  databases: Record<string, StoredTable[]>;
  /** Keys, secrets, and the number of the format. */
  files: Record<string, string>;
}

interface StoredTable {
  name: string;
  sql: string;
  rows: Record<string, Cell>[];
}
type Cell = string | number | null | { base64: string };

const FILE = join(import.meta.dirname, 'previous-release.json.br');
const RUN_TABLE_DATABASE = 'dynamodb.sqlite';
/** The definitions of all tables, without what SQLite creates by itself. */
const TABLES = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";

export const readFixture = (): Fixture => JSON.parse(brotliDecompressSync(readFileSync(FILE)).toString());

/** Writes the fixture from the data folder of a host that was stopped. */
export function saveFixture(dataFolder: string, about: Pick<Fixture, 'release' | 'stoppedAtMs' | 'names'>): number {
  const stored = readdirSync(dataFolder);
  const databases = stored.filter((file) => file.endsWith('.sqlite') && file !== RUN_TABLE_DATABASE);
  const fixture: Fixture = {
    ...about,
    rows: rowsOf(join(dataFolder, RUN_TABLE_DATABASE)),
    databases: Object.fromEntries(databases.map((file) => [file, tablesIn(join(dataFolder, file))])),
    files: Object.fromEntries(
      stored
        .filter((file) => (file.endsWith('.json') && file !== 'clock.json') || file === 'data-format')
        .map((file) => [file, readFileSync(join(dataFolder, file), 'utf8')]),
    ),
  };
  const compressed = brotliCompressSync(JSON.stringify(fixture));
  writeFileSync(FILE, compressed);
  return compressed.length;
}

function rowsOf(file: string): Fixture['rows'] {
  const database = new DatabaseSync(file, { readOnly: true });
  const [table] = database.prepare(`${TABLES} AND name LIKE '%RunTable%'`).all();
  const rows = database.prepare(`SELECT item FROM "${table?.name}" ORDER BY pk, sk`).all();
  database.close();
  return rows.map(({ item }) => JSON.parse(String(item)));
}

function tablesIn(file: string): StoredTable[] {
  const database = new DatabaseSync(file, { readOnly: true });
  const tables = database.prepare(TABLES).all() as { name: string; sql: string }[];
  const stored = tables.map(({ name, sql }) => ({
    name,
    sql,
    rows: database
      .prepare(`SELECT * FROM "${name}"`)
      .all()
      .map((row) => Object.fromEntries(Object.entries(row).map(([column, value]) => [column, cellOf(value)]))),
  }));
  database.close();
  return stored;
}

const cellOf = (value: unknown): Cell =>
  value instanceof Uint8Array ? { base64: Buffer.from(value).toString('base64') } : (value as Cell);

/** Fills a data folder, so that a host of this release finds what the previous one left. Its time continues. */
export async function restore(fixture: Fixture, dataFolder: string, stack: ResolvedStack): Promise<void> {
  for (const [file, text] of Object.entries(fixture.files))
    writeFileSync(join(dataFolder, file), text, { mode: 0o600 });
  for (const [file, tables] of Object.entries(fixture.databases)) restoreDatabase(join(dataFolder, file), tables);
  const dynamoDb = await startDynamoDb(dataFolder);
  try {
    await createTables(dynamoDb.url, stack);
    await putRows(dynamoDb.url, String(tablesOf(stack)[0]?.ref), fixture.rows);
  } finally {
    await dynamoDb.stop();
  }
  // Last: from now on, time passes for what was stored.
  const offsetMs = fixture.stoppedAtMs - Date.now();
  writeFileSync(join(dataFolder, 'clock.json'), JSON.stringify({ offsetMs }), { mode: 0o600 });
  if (!existsSync(join(dataFolder, RUN_TABLE_DATABASE))) throw new Error('the rows were not stored');
}

function restoreDatabase(file: string, tables: readonly StoredTable[]): void {
  const database = new DatabaseSync(file);
  for (const { name, sql, rows } of tables) {
    database.exec(sql);
    for (const row of rows) {
      const columns = Object.keys(row);
      const values = Object.values(row).map((cell) =>
        typeof cell === 'object' && cell !== null ? Buffer.from(cell.base64, 'base64') : cell,
      );
      const names = columns.map((column) => `"${column}"`).join(', ');
      database.prepare(`INSERT INTO "${name}" (${names}) VALUES (${columns.map(() => '?').join(', ')})`).run(...values);
    }
  }
  database.close();
}

async function putRows(endpoint: string, TableName: string, rows: Fixture['rows']): Promise<void> {
  const credentials = { accessKeyId: ENGINE_ACCESS_KEY_ID, secretAccessKey: 'local' };
  const client = new DynamoDBClient({ endpoint, region: REGION, credentials });
  for (const Item of rows) await client.send(new PutItemCommand({ TableName, Item: withBinary(Item) }));
  client.destroy();
}

/** In JSON, binary values are base64. The SDK takes bytes. */
const withBinary = (row: Record<string, AttributeValue>): Record<string, AttributeValue> =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      value.B === undefined ? value : { B: Buffer.from(String(value.B), 'base64') },
    ]),
  );
