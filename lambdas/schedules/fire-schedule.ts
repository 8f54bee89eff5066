import { LOGGED } from '../entry/environment.ts';
import { isoNow } from '../entry/ports.ts';
import { slotTrigger } from '../intake/requested-trigger.ts';
import { type Starter, startAutomation, startableAutomation } from '../intake/start-automation.ts';
import { hashOf } from '../run/canonical-json.ts';
import { refusalOf } from '../run/errors.ts';
import { deliveryKey, type StartedRun } from '../run/idempotency.ts';
import type { DueItem } from '../run/run-store.ts';
import { dueSlots, type ScheduleState, type StoredSchedule } from './schedule.ts';
import type { ScheduleStore } from './schedule-store.ts';

/**
 * One sweep starts at most this many slots of a schedule, and the next sweep continues. Otherwise the sweep after a long
 * outage could need more time than its function has, and would begin again with the first slot each time.
 */
export const SLOTS_STARTED_MAX = 20;

export interface ScheduleFirer extends Starter {
  schedules: Pick<ScheduleStore, 'schedule' | 'advance'>;
}

/**
 * Starts the runs of the slots that are due, then moves the schedule to its next slot:
 *
 *   read the schedule -> start a run for each due slot -> advance, if nobody else did
 *
 * A crash in between repeats both. The key of a slot is part of the transaction that creates its run, so each slot starts
 * one run, however often it is fired and by however many sweeps at once.
 */
export async function fireSchedule(
  firer: ScheduleFirer,
  { tenant, name }: Pick<DueItem & { kind: 'schedule' }, 'tenant' | 'name'>,
): Promise<StartedRun[]> {
  const found = await firer.schedules.schedule(tenant, name);
  const now = isoNow(firer.clock);
  const due = found?.state.nextSlot;
  // Another sweep was first. Clocks differ, so this one must not move the schedule back.
  if (!found || due === undefined || due > now) return [];
  const { schedule, state } = found;
  const { start, missed, next } = dueSlots(schedule, due, now);
  const nextSlot = start[SLOTS_STARTED_MAX] ?? next;
  const started: StartedRun[] = [];
  const { nextSlot: _due, ...facts } = state;
  const after: ScheduleState = {
    ...facts,
    revision: state.revision + 1,
    ...(nextSlot !== undefined && { nextSlot }),
  };
  for (const slot of start.slice(0, SLOTS_STARTED_MAX)) {
    const result = await startSlot(firer, tenant, schedule, slot);
    if ('run' in result) {
      started.push(result.run);
      after.lastRun = { slot, runId: result.run.runId };
      delete after.lastError;
    } else {
      after.lastError = { slot, at: now, ...result.refused };
      firer.log.error(LOGGED.scheduleFailed, { tenant, schedule: name, ...after.lastError });
    }
  }
  const lastMissed = missed.at(-1);
  if (lastMissed !== undefined) {
    after.missed = { slots: (state.missed?.slots ?? 0) + missed.length, lastSlot: lastMissed };
    firer.log.warn('slots of a schedule were missed and are not started', { tenant, schedule: name, slots: missed });
  }
  await firer.schedules.advance(state, after);
  return started;
}

/** A mistake in the definitions is shown at the schedule. Any other failure is tried again by the next sweep. */
async function startSlot(
  firer: ScheduleFirer,
  tenant: string,
  schedule: StoredSchedule,
  slot: string,
): Promise<{ run: StartedRun } | { refused: Pick<NonNullable<ScheduleState['lastError']>, 'code' | 'message'> }> {
  const { name, inputs } = schedule;
  try {
    const automation = await startableAutomation(firer, tenant, schedule.automation);
    const { run } = await startAutomation(firer, {
      tenant,
      automation,
      trigger: slotTrigger(schedule, slot),
      request: { actor: `schedule:${name}`, slot },
      key: () => deliveryKey.schedule({ name, slot }),
      // Not of the definition: a schedule that was changed since must not start a second run for the slot.
      requestHash: hashOf({ schedule: name, slot }),
      ...(inputs && { inputs }),
    });
    return { run };
  } catch (error) {
    const refused = refusalOf(error);
    if (!refused) throw error;
    return { refused: { code: refused.code, message: refused.message } };
  }
}
