import type { Run } from '../../../lambdas/run/run.ts';
import { nextSlots, Schedule } from '../../../lambdas/schedules/schedule.ts';
import { BY_SETUP } from '../../fakes/memory/memory-changes.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import type { Report } from './report.ts';

/** The name of the schedule and of its workflow. */
export const SCHEDULED = 'every-minute';
const SCHEDULE = Schedule.parse({
  name: SCHEDULED,
  automation: SCHEDULED,
  rate: '1 minute',
  catchUp: 'all',
  catchUpMax: 100,
});

/** Each slot of a schedule starts exactly one run: after crashes, with sweeps at the same time, and after an outage. */
export class ScheduleInvariants {
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  readonly #runOf = new Map<string, string>();
  #beganAt = '';

  constructor(report: Report, store: MemoryRunStore) {
    this.#report = report;
    this.#store = store;
  }

  begin(tenants: readonly string[], at: string): void {
    this.#beganAt = at;
    const [nextSlot] = nextSlots(SCHEDULE, at, 1);
    for (const tenant of tenants) {
      const state = { tenant, name: SCHEDULED, revision: 1, ...(nextSlot !== undefined && { nextSlot }) };
      this.#store.schedules.saveSchedule(tenant, { ...SCHEDULE, makers: ['olga'] }, state, BY_SETUP, undefined);
    }
  }

  created(runs: readonly Run[]): void {
    for (const { tenant, runId, automation, request } of runs) {
      if (request?.slot === undefined) continue;
      const slot = `${tenant} ${automation} ${request.slot}`;
      const before = this.#runOf.get(slot);
      if (before !== undefined) this.#report('a slot starts one run', `${slot}: ${before}, ${runId}`);
      this.#runOf.set(slot, runId);
    }
  }

  /** Called minutes after the last fault: every slot that is at least this old has started its run. */
  end(tenants: readonly string[], at: string, lateMs: number): void {
    for (const tenant of tenants) {
      const found = this.#store.schedules.drop(tenant, SCHEDULED);
      const until = new Date(Date.parse(at) - lateMs).toISOString();
      const nextSlot = found?.state.nextSlot ?? '';
      if (nextSlot < until) this.#report('every slot is started', `${tenant} is still at ${nextSlot}`);
      for (let slot = this.#beganAt; ; ) {
        [slot = ''] = nextSlots(SCHEDULE, slot, 1);
        if (slot >= nextSlot) break;
        if (!this.#runOf.has(`${tenant} ${SCHEDULED} ${slot}`))
          this.#report('every slot is started', `${tenant} ${slot}`);
      }
    }
  }
}
