import type { StatementSync } from 'node:sqlite';
import type { Delivery, SimCall } from './exchange.ts';
import { BadRequest } from './exchange.ts';
import type { SimulatorStore } from './store.ts';
import type { SystemName } from './system.ts';

export interface RecordedCall {
  seq: number;
  at: string;
  system: string;
  method: string;
  path: string;
  body: unknown;
  status: number;
  /** The header that joins the call to a trace. */
  traceparent?: string;
  /** Set if a fault cut the response. `status` is the status that the caller would have received. */
  answer?: 'lost' | 'truncated';
}

/** The record of calls is shown on a page, so it must not contain the secrets of login bodies. */
const CREDENTIAL_FIELDS = [
  'client_secret',
  'secret_id',
  'password',
  'token',
  'routing_key',
  'iam_request_headers',
  'credentials',
];

/** All calls to the simulated systems, in the order of their effects. */
export class CallRecord {
  readonly #store: SimulatorStore;
  readonly #insert: StatementSync;

  constructor(store: SimulatorStore) {
    this.#store = store;
    // A data folder of an earlier version has the table without it.
    const columns = store.database.prepare('PRAGMA table_info(calls)').all();
    if (!columns.some(({ name }) => name === 'traceparent')) {
      store.database.exec('ALTER TABLE calls ADD COLUMN traceparent TEXT');
    }
    this.#insert = store.database.prepare(
      'INSERT INTO calls (at, system, method, path, body, status, answer, traceparent) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
    );
  }

  add(system: SystemName, call: SimCall, atMs: number, status: number, delivery: Delivery): void {
    this.#insert.run(
      new Date(atMs).toISOString(),
      system,
      call.method,
      call.path,
      JSON.stringify(withoutCredentials(call.body)),
      status,
      delivery === 'whole' ? null : delivery,
      call.header('traceparent') ?? null,
    );
  }

  /** Oldest first. `since` is exclusive: a reader passes the last `seq` that it has. */
  list(query: URLSearchParams): RecordedCall[] {
    const clauses: string[] = [];
    const values: (string | number)[] = [];
    for (const column of ['system', 'method']) {
      const value = query.get(column);
      if (value === null) continue;
      clauses.push(`${column} = ? COLLATE NOCASE`);
      values.push(value);
    }
    clauses.push('seq > ?');
    values.push(wholeNumber(query, 'since') ?? 0);
    values.push(wholeNumber(query, 'limit') ?? -1);
    const rows = this.#store.database
      .prepare(`SELECT * FROM calls WHERE ${clauses.join(' AND ')} ORDER BY seq LIMIT ?`)
      .all(...values);
    return rows.map(toCall);
  }

  latest(limit: number): RecordedCall[] {
    return this.#store.database.prepare('SELECT * FROM calls ORDER BY seq DESC LIMIT ?').all(limit).map(toCall);
  }

  clear(): void {
    this.#store.transaction(() => this.#store.database.exec('DELETE FROM calls'));
  }
}

function toCall(row: Record<string, unknown>): RecordedCall {
  return {
    seq: Number(row.seq),
    at: String(row.at),
    system: String(row.system),
    method: String(row.method),
    path: String(row.path),
    body: JSON.parse(String(row.body)),
    status: Number(row.status),
    ...(row.traceparent !== null && { traceparent: String(row.traceparent) }),
    ...(row.answer !== null && { answer: row.answer as 'lost' | 'truncated' }),
  };
}

function wholeNumber(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  if (!/^\d+$/.test(text)) throw new BadRequest(`${name} must be a whole number, not "${text}"`);
  return Number(text);
}

function withoutCredentials(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(withoutCredentials);
  if (typeof body !== 'object' || body === null) return body;
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      CREDENTIAL_FIELDS.includes(name) ? '[redacted]' : withoutCredentials(value),
    ]),
  );
}
