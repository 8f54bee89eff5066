import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { systemPause } from '../entry/system.ts';
import type { ChangeAuthor } from '../pipeline/definition-changes.ts';
import { DynamoChanges } from '../pipeline/dynamo-definition-changes.ts';
import { ROW_IS_NEW, revisionIs } from '../run/dynamo/dynamo-conditions.ts';
import { docOf, scheduleItem } from '../run/dynamo/dynamo-items.ts';
import * as keys from '../run/dynamo/dynamo-keys.ts';
import { DynamoRows, under } from '../run/dynamo/dynamo-rows.ts';
import type { Pause } from '../run/dynamo/dynamo-transactions.ts';
import type { ScheduleState, StoredSchedule } from './schedule.ts';
import type { ScheduleStore, ScheduleWithState } from './schedule-store.ts';

export class DynamoScheduleStore implements ScheduleStore {
  readonly #rows: DynamoRows;
  readonly #changes: DynamoChanges;
  readonly #pause: Pause;

  constructor(client: DynamoDBClient, table: string, pause: Pause = systemPause) {
    this.#rows = new DynamoRows(client, table);
    this.#changes = new DynamoChanges(this.#rows, pause);
    this.#pause = pause;
  }

  async schedules(tenant: string, { after, limit }: { after?: string; limit: number }): Promise<ScheduleWithState[]> {
    const all = under(keys.tenantPartition(tenant), keys.SCHEDULE_PREFIX);
    const from = after === undefined ? all.from : keys.scheduleKey(tenant, after).sk;
    const items = await this.#rows.range({ ...all, from }, { limit: limit + 1 });
    const schedules = items.map((item) => docOf<StoredSchedule>(item)).filter(({ name }) => name !== after);
    const wanted = schedules.slice(0, limit);
    const states = await this.#rows.batchGet<ScheduleState>(
      wanted.map(({ name }) => keys.scheduleStateKey(tenant, name)),
      this.#pause,
    );
    // A schedule that is deleted between the two reads has no state.
    return wanted.flatMap((schedule) => {
      const state = states.find(({ name }) => name === schedule.name);
      return state ? [{ schedule, state }] : [];
    });
  }

  async schedule(tenant: string, name: string): Promise<ScheduleWithState | undefined> {
    const [schedule, state] = await Promise.all([
      this.#rows.get<StoredSchedule>(keys.scheduleKey(tenant, name)),
      this.#rows.get<ScheduleState>(keys.scheduleStateKey(tenant, name)),
    ]);
    return schedule && state && { schedule, state };
  }

  async saveSchedule(
    tenant: string,
    schedule: StoredSchedule,
    state: ScheduleState,
    by: ChangeAuthor,
    read: ScheduleWithState | undefined,
  ): Promise<void> {
    const { name } = schedule;
    const asRead = read ? revisionIs(read.state.revision) : ROW_IS_NEW;
    const besides = [this.#rows.put(scheduleItem(state), asRead)];
    const saved = { tenant, kind: 'schedule' as const, name, key: keys.scheduleKey(tenant, name), by, besides };
    await this.#changes.save(saved, schedule, { replaces: read?.schedule ?? null });
  }

  async deleteSchedule(tenant: string, { schedule, state }: ScheduleWithState, by: ChangeAuthor): Promise<void> {
    const { name } = schedule;
    const besides = [this.#rows.remove(keys.scheduleStateKey(tenant, name), revisionIs(state.revision))];
    const saved = { tenant, kind: 'schedule' as const, name, key: keys.scheduleKey(tenant, name), by, besides };
    await this.#changes.delete(saved, { replaces: schedule });
  }

  advance(read: ScheduleState, state: ScheduleState): Promise<boolean> {
    return this.#rows.save(scheduleItem(state), revisionIs(read.revision));
  }
}
