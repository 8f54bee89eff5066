import { expect, it } from 'vitest';
import { Schedule, type ScheduleState } from '../../lambdas/schedules/schedule.ts';
import type { ScheduleStore } from '../../lambdas/schedules/schedule-store.ts';
import { BY_SETUP } from '../fakes/memory/memory-changes.ts';

const SLOT = '2026-03-02T10:00:00.000Z';
let changes = 0;
const by = () => ({ ...BY_SETUP, changeId: `chg_schedule_${++changes}` });
const hourly = (name: string) => ({ ...Schedule.parse({ name, automation: 'a', rate: '1 hour' }), makers: ['olga'] });

/** What every store of schedules does. `dueNames` are the schedules in the due index at a time. */
export function scheduleStoreContract(
  open: () => { store: ScheduleStore; dueNames: (now: string) => Promise<string[]> },
): void {
  const state = (tenant: string, name: string, differing: Partial<ScheduleState> = {}): ScheduleState => ({
    tenant,
    name,
    revision: 1,
    nextSlot: SLOT,
    ...differing,
  });

  it('a schedule is due at its next slot, and one writer advances it', async () => {
    const { store, dueNames } = open();
    await store.saveSchedule('sched', hourly('b'), state('sched', 'b'), by(), undefined);
    await store.saveSchedule('sched', hourly('a'), state('sched', 'a', { nextSlot: undefined }), by(), undefined);
    expect(await dueNames('2026-03-02T09:59:59.999Z')).toEqual([]);
    expect(await dueNames(SLOT)).toEqual(['b']);
    const read = await store.schedule('sched', 'b');
    if (!read) throw new Error('not stored');
    const next = { ...read.state, revision: 2, nextSlot: '2026-03-02T11:00:00.000Z' };
    expect(await store.advance(read.state, next)).toBe(true);
    expect(await store.advance(read.state, next)).toBe(false);
    expect(await dueNames(SLOT)).toEqual([]);
    const page = await store.schedules('sched', { limit: 1 });
    expect(page.map(({ schedule }) => schedule.name)).toEqual(['a']);
    expect(await store.schedules('sched', { after: 'a', limit: 5 })).toEqual([{ schedule: hourly('b'), state: next }]);
    expect(await store.schedules('other', { limit: 5 })).toEqual([]);
  });

  it('a change from an old reading is refused, and a deleted schedule is not due', async () => {
    const { store, dueNames } = open();
    await store.saveSchedule('sched2', hourly('c'), state('sched2', 'c'), by(), undefined);
    const read = await store.schedule('sched2', 'c');
    if (!read) throw new Error('not stored');
    const again = store.saveSchedule('sched2', { ...hourly('c'), title: 'x' }, read.state, by(), undefined);
    await expect(again).rejects.toMatchObject({ code: 'CONFLICT' });
    await store.advance(read.state, { ...read.state, revision: 2 });
    const late = store.saveSchedule('sched2', { ...hourly('c'), title: 'x' }, read.state, by(), read);
    await expect(late).rejects.toMatchObject({ code: 'CONFLICT' });
    const now = await store.schedule('sched2', 'c');
    if (!now) throw new Error('not stored');
    await store.deleteSchedule('sched2', now, by());
    expect(await store.schedule('sched2', 'c')).toBeUndefined();
    expect(await store.advance(now.state, { ...now.state, revision: 3 })).toBe(false);
    expect(await dueNames(SLOT)).not.toContain('c');
  });
}
