import type { ChangeAuthor } from '../pipeline/definition-changes.ts';
import type { ScheduleState, StoredSchedule } from './schedule.ts';

export interface ScheduleWithState {
  schedule: StoredSchedule;
  state: ScheduleState;
}

/** The schedules of a tenant. A schedule and its state are written in one transaction, with the entry in the history. */
export interface ScheduleStore {
  /** By name, after the name `after`. */
  schedules(tenant: string, page: { after?: string; limit: number }): Promise<ScheduleWithState[]>;
  schedule(tenant: string, name: string): Promise<ScheduleWithState | undefined>;
  /** `read`: the schedule that the change was made from. If the stored one or its state differs, throws `CONFLICT`. */
  saveSchedule(
    tenant: string,
    schedule: StoredSchedule,
    state: ScheduleState,
    by: ChangeAuthor,
    read: ScheduleWithState | undefined,
  ): Promise<void>;
  deleteSchedule(tenant: string, read: ScheduleWithState, by: ChangeAuthor): Promise<void>;
  /** Replaces the state that was read. False if it was changed since, or the schedule was deleted. */
  advance(read: ScheduleState, state: ScheduleState): Promise<boolean>;
}
