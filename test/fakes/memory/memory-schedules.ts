import type { ChangeAuthor } from '../../../lambdas/pipeline/definition-changes.ts';
import { hashOf } from '../../../lambdas/run/canonical-json.ts';
import { CountersignError } from '../../../lambdas/run/errors.ts';
import type { DueItem } from '../../../lambdas/run/run-store.ts';
import type { ScheduleState, StoredSchedule } from '../../../lambdas/schedules/schedule.ts';
import type { ScheduleStore, ScheduleWithState } from '../../../lambdas/schedules/schedule-store.ts';
import { type Passage, undisturbed } from '../passage.ts';
import { MemoryRows } from './memory-rows.ts';

/** Schedules without DynamoDB. `changes` are the entries of the history. */
export class MemorySchedules implements ScheduleStore {
  readonly #schedules = new MemoryRows<StoredSchedule>();
  readonly #states = new MemoryRows<ScheduleState>();
  readonly #passage: Passage;
  readonly changes: (ChangeAuthor & { name: string; before: unknown; after: unknown })[] = [];

  constructor(passage: Passage = undisturbed) {
    this.#passage = passage;
  }

  schedules(tenant: string, { after = '', limit }: { after?: string; limit: number }): Promise<ScheduleWithState[]> {
    return this.#passage('schedules', async () =>
      this.#schedules
        .inPartition(tenant)
        .filter(({ name }) => name > after)
        .slice(0, limit)
        .map((schedule) => ({ schedule, state: this.#states.get(tenant, schedule.name) as ScheduleState })),
    );
  }

  schedule(tenant: string, name: string): Promise<ScheduleWithState | undefined> {
    return this.#passage('schedule', async () => this.#read(tenant, name));
  }

  saveSchedule(
    tenant: string,
    schedule: StoredSchedule,
    state: ScheduleState,
    by: ChangeAuthor,
    read: ScheduleWithState | undefined,
  ): Promise<void> {
    return this.#passage('saveSchedule', async () => {
      const { name } = schedule;
      const now = this.#read(tenant, name);
      this.#assertStill(name, read, now);
      if (now && hashOf(now.schedule) === hashOf(JSON.parse(JSON.stringify(schedule)))) return;
      this.#schedules.set(tenant, name, schedule);
      this.#states.set(tenant, name, state);
      this.changes.push({ ...by, name, before: now?.schedule ?? null, after: schedule });
    });
  }

  deleteSchedule(tenant: string, read: ScheduleWithState, by: ChangeAuthor): Promise<void> {
    return this.#passage('deleteSchedule', async () => {
      const { name } = read.schedule;
      this.#assertStill(name, read, this.#read(tenant, name));
      this.#schedules.set(tenant, name, undefined);
      this.#states.set(tenant, name, undefined);
      this.changes.push({ ...by, name, before: read.schedule, after: null });
    });
  }

  advance(read: ScheduleState, state: ScheduleState): Promise<boolean> {
    return this.#passage('advance', async () => {
      const now = this.#states.peek(read.tenant, read.name);
      if (now?.revision !== read.revision) return false;
      this.#states.set(read.tenant, read.name, state);
      return true;
    });
  }

  /** Deletes a schedule without an entry in the history, and returns it. */
  drop(tenant: string, name: string): ScheduleWithState | undefined {
    const found = this.#read(tenant, name);
    this.#schedules.set(tenant, name, undefined);
    this.#states.set(tenant, name, undefined);
    return found;
  }

  nextDueAt(): string | undefined {
    let earliest: string | undefined;
    for (const { nextSlot } of this.#states.peekAll()) {
      if (nextSlot !== undefined && (earliest === undefined || nextSlot < earliest)) earliest = nextSlot;
    }
    return earliest;
  }

  /** As the due index shows them. */
  due(now: string): (DueItem & { kind: 'schedule' })[] {
    return [...this.#states.peekAll()].flatMap(({ tenant, name, nextSlot }) =>
      nextSlot !== undefined && nextSlot <= now ? [{ kind: 'schedule' as const, tenant, name, dueAt: nextSlot }] : [],
    );
  }

  #read(tenant: string, name: string): ScheduleWithState | undefined {
    const [schedule, state] = [this.#schedules.get(tenant, name), this.#states.get(tenant, name)];
    return schedule && state && { schedule, state };
  }

  #assertStill(name: string, read: ScheduleWithState | undefined, now: ScheduleWithState | undefined): void {
    if (
      read?.state.revision === now?.state.revision &&
      hashOf(read?.schedule ?? null) === hashOf(now?.schedule ?? null)
    ) {
      return;
    }
    throw new CountersignError('CONFLICT', `schedule ${name} was changed meanwhile`);
  }
}
