import type { DatabaseSync } from 'node:sqlite';
import { inTransaction, openDatabase } from '../durable-file.ts';

export interface StoredMessage {
  seq: number;
  queue: string;
  messageId: string;
  groupId: string;
  body: string;
  traceHeader: string | null;
  sentMs: number;
  receiveCount: number;
  firstReceiveMs: number | null;
  receipt: string | null;
}

type NewMessage = Pick<StoredMessage, 'queue' | 'messageId' | 'groupId' | 'body' | 'traceHeader' | 'sentMs'> & {
  visibleMs: number;
};

/** The retention and dead-letter rules of a queue. */
export interface QueueTimeRules {
  queue: string;
  retentionMs: number;
  redrive?: { deadLetterQueue: string; maxReceiveCount: number };
}

/**
 * Ready and hidden messages have separate indexes: the ready ones by group and age (round robin takes the first row after the
 * group served last), the hidden ones by the time at which they become ready.
 */
const SCHEMA = `
CREATE TABLE IF NOT EXISTS messages (
  seq INTEGER PRIMARY KEY,
  queue TEXT NOT NULL, messageId TEXT NOT NULL, groupId TEXT NOT NULL,
  body TEXT NOT NULL, traceHeader TEXT,
  sentMs REAL NOT NULL, visibleMs REAL NOT NULL, ready INTEGER NOT NULL,
  receiveCount INTEGER NOT NULL DEFAULT 0, firstReceiveMs REAL, receipt TEXT
);
CREATE INDEX IF NOT EXISTS ready_by_group ON messages (queue, groupId, seq) WHERE ready = 1;
CREATE INDEX IF NOT EXISTS hidden_by_time ON messages (queue, visibleMs) WHERE ready = 0;
CREATE INDEX IF NOT EXISTS by_age ON messages (queue, sentMs);`;

const COLUMNS = 'seq, queue, messageId, groupId, body, traceHeader, sentMs, receiveCount, firstReceiveMs, receipt';

export class SqsStore {
  readonly #database: DatabaseSync;
  readonly #statements: ReturnType<typeof prepare>;
  /** The group served last, by queue. It is not stored: after a restart any group may be first. */
  readonly #lastGroup = new Map<string, string>();

  constructor(dataFolder: string) {
    this.#database = openDatabase(dataFolder, 'sqs', SCHEMA);
    this.#statements = prepare(this.#database);
  }

  add(messages: NewMessage[], nowMs: number): void {
    const insert = () => {
      for (const { queue, messageId, groupId, body, traceHeader, sentMs, visibleMs } of messages) {
        const ready = visibleMs <= nowMs ? 1 : 0;
        this.#statements.add.run(queue, messageId, groupId, body, traceHeader, sentMs, visibleMs, ready);
      }
    };
    if (messages.length === 1) insert();
    else inTransaction(this.#database, insert);
  }

  /** Receives at most `max` ready messages, one group after another, and hides them for `visibilityMs`. */
  take(rules: QueueTimeRules, max: number, visibilityMs: number, nowMs: number, newReceipt: () => string) {
    return inTransaction(this.#database, () => {
      const deadLettered = this.#settle(rules, nowMs);
      const taken: StoredMessage[] = [];
      while (taken.length < max) {
        const message = this.#next(rules.queue);
        if (message === undefined) break;
        message.receipt = newReceipt();
        message.receiveCount += 1;
        message.firstReceiveMs ??= nowMs;
        this.#statements.hide.run(nowMs + visibilityMs, message.receipt, message.firstReceiveMs, message.seq);
        taken.push(message);
      }
      return { taken, deadLettered };
    });
  }

  #next(queue: string): StoredMessage | undefined {
    const last = this.#lastGroup.get(queue);
    const row =
      (last !== undefined && this.#statements.afterGroup.get(queue, last)) || this.#statements.first.get(queue);
    if (row === undefined) return undefined;
    const message = row as unknown as StoredMessage;
    this.#lastGroup.set(queue, message.groupId);
    return message;
  }

  /** Applies retention, then the dead-letter rule, then makes messages visible whose time has come. Returns the dead letters. */
  settle(rules: QueueTimeRules, nowMs: number): number {
    return inTransaction(this.#database, () => this.#settle(rules, nowMs));
  }

  #settle({ queue, retentionMs, redrive }: QueueTimeRules, nowMs: number): number {
    this.#statements.expire.run(queue, nowMs - retentionMs);
    const deadLettered =
      redrive === undefined
        ? 0
        : this.#statements.deadLetter.run(redrive.deadLetterQueue, queue, nowMs, redrive.maxReceiveCount).changes;
    this.#statements.show.run(queue, nowMs);
    return Number(deadLettered);
  }

  /** When the next hidden message becomes ready, if any is hidden. */
  nextVisibleMs(queue: string): number | undefined {
    return (this.#statements.nextVisible.get(queue) as { atMs: number | null }).atMs ?? undefined;
  }

  find(queue: string, seq: number): (StoredMessage & { ready: number; visibleMs: number }) | undefined {
    return this.#statements.find.get(queue, seq) as ReturnType<SqsStore['find']>;
  }

  delete(handles: { queue: string; seq: number; receipt: string }[]): void {
    const run = () => {
      for (const { queue, seq, receipt } of handles) this.#statements.delete.run(queue, seq, receipt);
    };
    if (handles.length === 1) run();
    else inTransaction(this.#database, run);
  }

  hideUntil(seq: number, visibleMs: number): void {
    this.#statements.hideUntil.run(visibleMs, seq);
  }

  count(queue: string): { ready: number; inFlight: number; delayed: number } {
    return this.#statements.count.get(queue) as ReturnType<SqsStore['count']>;
  }

  /** When the oldest message that is not deleted was sent. */
  oldestSentMs(queue: string): number | undefined {
    const { sentMs } = this.#statements.oldest.get(queue) as { sentMs: number | null };
    return sentMs ?? undefined;
  }

  close(): void {
    this.#database.close();
  }
}

function prepare(database: DatabaseSync) {
  const sql = (text: string) => database.prepare(text);
  return {
    add: sql(`INSERT INTO messages (queue, messageId, groupId, body, traceHeader, sentMs, visibleMs, ready)
              VALUES (?, ?, ?, ?, ?, ?, ?, ?)`),
    afterGroup: sql(`SELECT ${COLUMNS} FROM messages WHERE queue = ? AND ready = 1 AND groupId > ?
                     ORDER BY groupId, seq LIMIT 1`),
    first: sql(`SELECT ${COLUMNS} FROM messages WHERE queue = ? AND ready = 1 ORDER BY groupId, seq LIMIT 1`),
    hide: sql(`UPDATE messages SET ready = 0, visibleMs = ?, receipt = ?, firstReceiveMs = ?,
               receiveCount = receiveCount + 1 WHERE seq = ?`),
    expire: sql('DELETE FROM messages WHERE queue = ? AND sentMs <= ?'),
    deadLetter: sql(`UPDATE messages SET queue = ?, ready = 1, receipt = NULL, receiveCount = 0,
                     firstReceiveMs = NULL WHERE queue = ? AND ready = 0 AND visibleMs <= ? AND receiveCount >= ?`),
    show: sql('UPDATE messages SET ready = 1 WHERE queue = ? AND ready = 0 AND visibleMs <= ?'),
    nextVisible: sql('SELECT MIN(visibleMs) AS atMs FROM messages WHERE queue = ? AND ready = 0'),
    find: sql(`SELECT ${COLUMNS}, ready, visibleMs FROM messages WHERE queue = ? AND seq = ?`),
    delete: sql('DELETE FROM messages WHERE queue = ? AND seq = ? AND receipt = ?'),
    hideUntil: sql('UPDATE messages SET ready = 0, visibleMs = ? WHERE seq = ?'),
    oldest: sql('SELECT MIN(sentMs) AS sentMs FROM messages WHERE queue = ?'),
    count: sql(`SELECT COUNT(*) FILTER (WHERE ready = 1) AS ready,
                COUNT(*) FILTER (WHERE ready = 0 AND receipt IS NOT NULL) AS inFlight,
                COUNT(*) FILTER (WHERE ready = 0 AND receipt IS NULL) AS delayed FROM messages WHERE queue = ?`),
  };
}
