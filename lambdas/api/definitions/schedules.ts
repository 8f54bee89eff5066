import { closeNameOr, didYouMean } from '../../entry/did-you-mean.ts';
import { Problem } from '../../entry/http.ts';
import { type Clock, type Ids, isoNow } from '../../entry/ports.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import {
  nextSlots,
  type Schedule,
  type ScheduleState,
  type StoredSchedule,
  scheduleProblem,
} from '../../schedules/schedule.ts';
import type { ScheduleStore, ScheduleWithState } from '../../schedules/schedule-store.ts';
import { inputTemplateProblems } from '../../workflow/inputs.ts';
import type { Caller } from '../authorizer/caller.ts';
import type { scheduleRoutes } from '../contract/definitions/schedules.ts';
import { type Paged, pageByPlace, readPage } from '../paging.ts';
import type { Handlers } from '../router.ts';
import { authorOf } from './change-person.ts';

export interface SchedulesPorts extends Paged {
  schedules: ScheduleStore;
  definitions: Pick<Definitions, 'automations' | 'workflow'>;
  clock: Clock;
  ids: Ids;
}

const NEXT_RUNS_SHOWN = 5;

export const scheduleHandlers: Handlers<SchedulesPorts, typeof scheduleRoutes> = {
  async listSchedules(ports, { caller: { tenant }, query }) {
    const page = await readPage(ports, `${tenant}/schedules`, query, ({ after, limit }) =>
      pageByPlace(
        limit,
        (count) => ports.schedules.schedules(tenant, { after, limit: count }),
        ({ schedule }) => schedule.name,
      ),
    );
    const schedules = page.items.map((found) => scheduleView(ports, found));
    return { status: 200, body: { schedules, nextCursor: page.nextCursor } };
  },

  async getSchedule(ports, { caller: { tenant }, params: { name } }) {
    return { status: 200, body: scheduleView(ports, await mustFind(ports, tenant, name)) };
  },

  async saveSchedule(ports, { caller, params: { name }, body }) {
    if (body.name !== undefined && body.name !== name) {
      throw new Problem(400, 'BAD_REQUEST', `the body has the name ${body.name}, the path has ${name}`);
    }
    const schedule = { ...body, name };
    await assertValid(ports, caller.tenant, schedule);
    const read = await ports.schedules.schedule(caller.tenant, name);
    return { status: 200, body: await save(ports, caller, { ...schedule, makers: [caller.person] }, read) };
  },

  async deleteSchedule(ports, { caller, params: { name } }) {
    const found = await mustFind(ports, caller.tenant, name);
    await ports.schedules.deleteSchedule(caller.tenant, found, authorOf(ports, caller));
    return { status: 200, body: { deleted: name } };
  },

  async enableSchedule(ports, { caller, params: { name } }) {
    const found = await mustFind(ports, caller.tenant, name);
    await assertValid(ports, caller.tenant, found.schedule);
    const makers = [...new Set([...found.schedule.makers, caller.person])];
    return { status: 200, body: await save(ports, caller, { ...found.schedule, enabled: true, makers }, found) };
  },

  async disableSchedule(ports, { caller, params: { name } }) {
    const found = await mustFind(ports, caller.tenant, name);
    return { status: 200, body: await save(ports, caller, { ...found.schedule, enabled: false }, found) };
  },
};

async function mustFind({ schedules }: SchedulesPorts, tenant: string, name: string): Promise<ScheduleWithState> {
  const found = await schedules.schedule(tenant, name);
  if (found) return found;
  const all = await schedules.schedules(tenant, { limit: 100 });
  const names = all.map(({ schedule }) => schedule.name);
  throw new Problem(404, 'NOT_FOUND', `there is no schedule ${name}${closeNameOr('schedules list', name, names)}`);
}

async function save(
  ports: SchedulesPorts,
  caller: Caller,
  schedule: StoredSchedule,
  read: ScheduleWithState | undefined,
) {
  const { tenant } = caller;
  const by = authorOf(ports, caller);
  const state = stateAfter(tenant, schedule, read, by.at);
  await ports.schedules.saveSchedule(tenant, schedule, state, by, read);
  return scheduleView(ports, { schedule, state });
}

const TIMES = ['cron', 'rate', 'timeZone', 'enabled'] as const;

/** With the same times, slots that are due stay due. With other times, or enabled again, it starts with the next slot. */
function stateAfter(
  tenant: string,
  schedule: StoredSchedule,
  read: ScheduleWithState | undefined,
  now: string,
): ScheduleState {
  const { nextSlot: due, revision = 0, ...facts } = read?.state ?? { tenant, name: schedule.name };
  const same = read !== undefined && TIMES.every((field) => read.schedule[field] === schedule[field]);
  const next = schedule.enabled ? (same ? due : nextSlots(schedule, now, 1)[0]) : undefined;
  return {
    ...facts,
    tenant,
    name: schedule.name,
    revision: revision + 1,
    ...(next !== undefined && { nextSlot: next }),
  };
}

function scheduleView({ clock }: SchedulesPorts, { schedule, state }: ScheduleWithState) {
  const { lastRun = null, lastError = null, missed = null } = state;
  const nextRuns = schedule.enabled ? nextSlots(schedule, isoNow(clock), NEXT_RUNS_SHOWN) : [];
  return { ...schedule, nextRuns, lastRun, lastError, missed };
}

async function assertValid(ports: SchedulesPorts, tenant: string, schedule: Schedule): Promise<void> {
  const problem = scheduleProblem(schedule, isoNow(ports.clock));
  if (problem !== undefined) throw invalid(problem);
  const all = await ports.definitions.automations(tenant);
  const automation = all.find(({ name }) => name === schedule.automation);
  if (!automation) {
    const names = all.map(({ name }) => name);
    throw invalid(`automation: there is no automation ${schedule.automation}${didYouMean(schedule.automation, names)}`);
  }
  const { name, version } = automation.workflow;
  const workflow = await ports.definitions.workflow(tenant, name, version);
  if (!workflow) throw invalid(`automation: its workflow ${name} version ${version} is not published`);
  const inputs = { ...automation.inputs, ...schedule.inputs };
  const [wrong] = inputTemplateProblems(workflow, inputs, { complete: true });
  if (wrong) throw invalid(`${['inputs', ...wrong.path].join('.')}: ${wrong.message}`);
}

const invalid = (detail: string) => new Problem(422, 'SCHEDULE_INVALID', detail);
