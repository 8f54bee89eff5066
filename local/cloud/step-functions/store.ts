import type { DatabaseSync } from 'node:sqlite';
import { inTransaction, openDatabase } from '../durable-file.ts';

type ExecutionStatus = 'RUNNING' | 'SUCCEEDED' | 'FAILED';

export interface ExecutionRow {
  seq: number;
  arn: string;
  machineArn: string;
  name: string;
  input: string;
  /** The definition at the start: a new deployment does not change a running execution. */
  definition: string;
  status: ExecutionStatus;
  startMs: number;
  stopMs: number | null;
  output: string | null;
  error: string | null;
  cause: string | null;
}

export interface ExecutionEnd {
  status: Exclude<ExecutionStatus, 'RUNNING'>;
  stopMs: number;
  output?: string;
  error?: string;
  cause?: string;
}

interface TaskRow {
  token: string;
  arn: string;
  key: string;
  open: number;
}

interface HistoryRow {
  id: number;
  atMs: number;
  type: string;
  details: string;
}

const SCHEMA = `
CREATE TABLE IF NOT EXISTS executions (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, arn TEXT NOT NULL UNIQUE, machineArn TEXT NOT NULL, name TEXT NOT NULL,
  input TEXT NOT NULL, definition TEXT NOT NULL, status TEXT NOT NULL,
  startMs REAL NOT NULL, stopMs REAL, output TEXT, error TEXT, cause TEXT
);
CREATE TABLE IF NOT EXISTS journal (
  arn TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (arn, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS task_tokens (
  token TEXT PRIMARY KEY, arn TEXT NOT NULL, key TEXT NOT NULL, open INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS open_task_tokens ON task_tokens (arn) WHERE open = 1;
CREATE TABLE IF NOT EXISTS history (
  arn TEXT NOT NULL, id INTEGER NOT NULL, key TEXT NOT NULL, atMs REAL NOT NULL, type TEXT NOT NULL, details TEXT NOT NULL,
  PRIMARY KEY (arn, id), UNIQUE (arn, key)
);`;

export class StepFunctionsStore {
  readonly #database: DatabaseSync;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(dataFolder: string) {
    this.#database = openDatabase(dataFolder, 'step-functions', SCHEMA);
    this.#statements = prepare(this.#database);
  }

  execution(arn: string): ExecutionRow | undefined {
    return this.#statements.execution.get(arn) as ExecutionRow | undefined;
  }

  running(): ExecutionRow[] {
    return this.#statements.running.all() as unknown as ExecutionRow[];
  }

  /** Newest first. */
  list(machineArn: string): ExecutionRow[] {
    return this.#statements.list.all(machineArn) as unknown as ExecutionRow[];
  }

  add(row: Omit<ExecutionRow, 'seq' | 'status' | 'stopMs' | 'output' | 'error' | 'cause'>): void {
    this.#statements.add.run({ ...row });
  }

  /** Ends an execution: deletes its journal and closes its tokens. */
  end(arn: string, { status, stopMs, output, error, cause }: ExecutionEnd): void {
    inTransaction(this.#database, () => {
      this.#statements.end.run(status, stopMs, output ?? null, error ?? null, cause ?? null, arn);
      this.#statements.closeTokens.run(arn);
      this.#statements.deleteJournal.run(arn);
    });
  }

  journaled(arn: string, key: string): unknown {
    const row = this.#statements.journaled.get(arn, key) as { value: string } | undefined;
    return row === undefined ? undefined : JSON.parse(row.value);
  }

  journal(arn: string, key: string, value: unknown): void {
    this.#statements.journal.run(arn, key, JSON.stringify(value ?? null));
  }

  /** Stores the outcome of a task and closes its token in one transaction, so that no outcome is lost or counts twice. */
  endTask(arn: string, key: string, journalKey: string, outcome: unknown): void {
    inTransaction(this.#database, () => {
      this.journal(arn, journalKey, outcome);
      this.#statements.closeToken.run(arn, key);
    });
  }

  openTask(task: Omit<TaskRow, 'open'>): void {
    this.#statements.openTask.run({ ...task });
  }

  task(token: string): TaskRow | undefined {
    return this.#statements.task.get(token) as TaskRow | undefined;
  }

  /** Records an event once per key: an execution that continues after a restart does not repeat its events. */
  record(arn: string, key: string, atMs: number, type: string, details: object): void {
    this.#statements.record.run(arn, arn, key, atMs, type, JSON.stringify(details));
  }

  history(arn: string): HistoryRow[] {
    return this.#statements.history.all(arn) as unknown as HistoryRow[];
  }

  close(): void {
    this.#database.close();
  }
}

function prepare(database: DatabaseSync) {
  const sql = (text: string) => database.prepare(text);
  return {
    execution: sql('SELECT * FROM executions WHERE arn = ?'),
    running: sql("SELECT * FROM executions WHERE status = 'RUNNING' ORDER BY seq"),
    list: sql('SELECT * FROM executions WHERE machineArn = ? ORDER BY seq DESC'),
    add: sql(`INSERT INTO executions (arn, machineArn, name, input, definition, status, startMs)
              VALUES (:arn, :machineArn, :name, :input, :definition, 'RUNNING', :startMs)`),
    end: sql(`UPDATE executions SET status = ?, stopMs = ?, output = ?, error = ?, cause = ?
              WHERE arn = ? AND status = 'RUNNING'`),
    closeTokens: sql('UPDATE task_tokens SET open = 0 WHERE arn = ? AND open = 1'),
    deleteJournal: sql('DELETE FROM journal WHERE arn = ?'),
    journaled: sql('SELECT value FROM journal WHERE arn = ? AND key = ?'),
    journal: sql('INSERT OR IGNORE INTO journal (arn, key, value) VALUES (?, ?, ?)'),
    openTask: sql('INSERT INTO task_tokens (token, arn, key, open) VALUES (:token, :arn, :key, 1)'),
    closeToken: sql('UPDATE task_tokens SET open = 0 WHERE arn = ? AND open = 1 AND key = ?'),
    task: sql('SELECT * FROM task_tokens WHERE token = ?'),
    record: sql(`INSERT OR IGNORE INTO history (arn, id, key, atMs, type, details)
                 VALUES (?, (SELECT COALESCE(MAX(id), 0) + 1 FROM history WHERE arn = ?), ?, ?, ?, ?)`),
    history: sql('SELECT id, atMs, type, details FROM history WHERE arn = ? ORDER BY id'),
  };
}
