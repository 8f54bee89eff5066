import { isDeepStrictEqual } from 'node:util';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Commit } from '../../run/commit.ts';
import { rowIsStill } from '../../run/dynamo/dynamo-conditions.ts';
import { docOf, type Item, keyOf, toItem } from '../../run/dynamo/dynamo-items.ts';
import * as keys from '../../run/dynamo/dynamo-keys.ts';
import { DynamoRows } from '../../run/dynamo/dynamo-rows.ts';
import type { Pause } from '../../run/dynamo/dynamo-transactions.ts';
import type { Run } from '../../run/run.ts';
import type { PreviousDay } from '../daily-log/daily-log.ts';
import type { AcceptedRun } from './accepted-list.ts';
import type { AcceptedRows, AcceptedState } from './write-accepted-list.ts';

/** About as many keys as one response of DynamoDB has. */
const KEYS_PER_PAGE = 5_000;

/**
 * The row of each run is in the index of all runs from the transaction that accepts it, by the time of acceptance. So the
 * lists need no further write.
 */
export class DynamoAcceptedRuns implements AcceptedRows {
  readonly #rows: DynamoRows;
  readonly #pause: Pause;

  constructor(client: DynamoDBClient, table: string, pause: Pause) {
    this.#rows = new DynamoRows(client, table);
    this.#pause = pause;
  }

  async *accepted(tenant: string, from: string, until: string): AsyncGenerator<AcceptedRun> {
    const { index, partition } = keys.RUN_LISTS.all(tenant);
    let after: Item | undefined;
    do {
      const page = { limit: KEYS_PER_PAGE, from, upTo: until, ...(after && { after }) };
      const { items, lastKey } = await this.#rows.indexPage(index, partition, page);
      for (const item of items) {
        const acceptedAt = item[index.sort]?.S ?? '';
        const run = keys.parseRunPartition(keyOf(item).pk);
        // The range of the index includes its end.
        if (run && acceptedAt < until) yield { runId: run.runId, acceptedAt };
      }
      after = lastKey;
    } while (after);
  }

  async sealed(tenant: string, runIds: readonly string[]): Promise<Set<string>> {
    const wanted = [...new Set(runIds)].map((runId) => keys.evidenceKey(tenant, runId));
    return new Set((await this.#rows.batchGetItems(wanted, this.#pause)).flatMap(runIdOf));
  }

  runs(tenant: string, runIds: readonly string[]): Promise<Run[]> {
    return this.#rows.batchGet(
      [...new Set(runIds)].map((runId) => keys.runKey(tenant, runId)),
      this.#pause,
    );
  }

  async commitHashes(
    tenant: string,
    commits: readonly { runId: string; count: number }[],
  ): Promise<Map<string, string>> {
    const wanted = commits.map(({ runId, count }) => keys.commitKey(tenant, runId, count));
    const items = await this.#rows.batchGetItems(wanted, this.#pause);
    return new Map(items.flatMap((item) => runIdOf(item).map((runId) => [runId, docOf<Commit>(item).hash] as const)));
  }

  state(tenant: string): Promise<AcceptedState | undefined> {
    return this.#rows.get(keys.acceptedStateKey(tenant));
  }

  async saveState(tenant: string, read: AcceptedState | undefined, state: AcceptedState): Promise<boolean> {
    const key = keys.acceptedStateKey(tenant);
    if (await this.#rows.save(toItem(key, state), rowIsStill(read && toItem(key, read)))) return true;
    // The SDK repeats a write whose response was lost, and then the condition fails because of the first one.
    return isDeepStrictEqual(await this.state(tenant), state);
  }

  lastClosed(tenant: string): Promise<PreviousDay | undefined> {
    return this.#rows.get(keys.lastClosedLogKey(tenant));
  }
}

const runIdOf = (item: Item): string[] => {
  const run = keys.parseRunPartition(keyOf(item).pk);
  return run ? [run.runId] : [];
};
