import { closeNameOr } from '../../entry/did-you-mean.ts';
import { Problem } from '../../entry/http.ts';
import type { Clock, Ids } from '../../entry/ports.ts';
import {
  type Automation,
  type AutomationDefinition,
  destinationsOf,
  triggersOf,
  withStoredTriggers,
} from '../../pipeline/automation.ts';
import { CHANGES_SEEN_WITHIN_MS } from '../../pipeline/cached-definitions.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { publishNextVersion } from '../../pipeline/publish-workflow.ts';
import { hashOf } from '../../run/canonical-json.ts';
import type { ScheduleStore } from '../../schedules/schedule-store.ts';
import type { Caller } from '../authorizer/caller.ts';
import type { automationRoutes } from '../contract/definitions/automations.ts';
import { type Paged, pageOf, readPage } from '../paging.ts';
import type { Handlers } from '../router.ts';
import { authorOf } from './change-person.ts';
import { type AutomationChecks, assertAutomationValid, mustHaveWorkflow, mustRead } from './check-automation.ts';

export interface AutomationsPorts extends Paged, AutomationChecks {
  definitions: AutomationChecks['definitions'] &
    Pick<Definitions, 'automations' | 'saveAutomation' | 'deleteAutomation' | 'publishWorkflow'>;
  schedules: Pick<ScheduleStore, 'schedules'>;
  clock: Clock;
  ids: Ids;
}

export const automationHandlers: Handlers<AutomationsPorts, typeof automationRoutes> = {
  async listAutomations(ports, { caller: { tenant }, query }) {
    // Every webhook reads all of them too, so a tenant has few.
    const all = await ports.definitions.automations(tenant);
    const page = await readPage(ports, `${tenant}/automations`, query, (place) =>
      pageOf(all, place, ({ name }) => name),
    );
    return { status: 200, body: { automations: page.items.map(automationView), nextCursor: page.nextCursor } };
  },

  async getAutomation(ports, { caller: { tenant }, params: { name } }) {
    return { status: 200, body: automationView(await mustFind(ports, tenant, name)) };
  },

  async saveAutomation(ports, { caller, params: { name }, body }) {
    if (body.name !== undefined && body.name !== name) {
      throw new Problem(400, 'BAD_REQUEST', `the body has the name ${body.name}, the path has ${name}`);
    }
    const before = (await ports.definitions.automations(caller.tenant)).find((each) => each.name === name);
    const automation = { ...body, name, ...authorOfInputs(body, before, caller.person) };
    await assertAutomationValid(ports, caller.tenant, automation);
    const workflow = await workflowOf(ports, caller, automation);
    return { status: 200, body: await save(ports, caller, withStoredTriggers({ ...automation, workflow })) };
  },

  async deleteAutomation(ports, { caller, params: { name } }) {
    const { tenant } = caller;
    const found = await mustFind(ports, tenant, name);
    const users = await schedulesOf(ports, tenant, name);
    if (users.length > 0) {
      throw new Problem(409, 'CONFLICT', `these schedules start ${name}: ${users.join(', ')}; delete them first`);
    }
    await ports.definitions.deleteAutomation(tenant, found, authorOf(ports, caller));
    return { status: 200, body: { deleted: name } };
  },

  async enableAutomation(ports, { caller, params: { name } }) {
    const found = await mustFind(ports, caller.tenant, name);
    // What it names may have been deleted since it was saved.
    await assertAutomationValid(ports, caller.tenant, found);
    return { status: 200, body: await save(ports, caller, { ...found, enabled: true }, found) };
  },

  async disableAutomation(ports, { caller, params: { name } }) {
    const found = await mustFind(ports, caller.tenant, name);
    return { status: 200, body: await save(ports, caller, { ...found, enabled: false }, found) };
  },
};

/** Instructions are published as a workflow. Unchanged ones keep their version and its author. */
async function workflowOf(ports: AutomationsPorts, { tenant, person }: Caller, automation: AutomationDefinition) {
  const { name, instructions } = automation;
  if (instructions === undefined) return mustHaveWorkflow(automation);
  const made = await mustRead(ports, tenant, { ...automation, instructions });
  const published = await publishNextVersion(ports, tenant, made, person);
  if (published) return { name: made.name, version: published.version };
  throw new Problem(409, 'CONFLICT', `others are saving ${name} at the same time; try again`);
}

/** The first trigger is also shown alone: an automation had one before. */
function automationView(automation: Automation) {
  const triggers = triggersOf(automation);
  return {
    ...automation,
    trigger: triggers[0] ?? { source: 'manual' as const },
    triggers,
    notifications: destinationsOf(automation),
  };
}

/** `replaces`: what was read before. If it was changed since then, nothing is saved. */
async function save(ports: AutomationsPorts, caller: Caller, automation: Automation, replaces?: Automation) {
  const how = replaces ? { replaces } : {};
  await ports.definitions.saveAutomation(caller.tenant, automation, authorOf(ports, caller), how);
  return { ...automationView(automation), effectiveWithinSeconds: CHANGES_SEEN_WITHIN_MS / 1000 };
}

async function mustFind({ definitions }: AutomationsPorts, tenant: string, name: string): Promise<Automation> {
  const all = await definitions.automations(tenant);
  const found = all.find((automation) => automation.name === name);
  if (found) return found;
  const names = all.map((automation) => automation.name);
  throw new Problem(404, 'NOT_FOUND', `there is no automation ${name}${closeNameOr('automations list', name, names)}`);
}

const SCHEDULES_READ = 100;

async function schedulesOf({ schedules }: AutomationsPorts, tenant: string, name: string): Promise<string[]> {
  const found: string[] = [];
  for (let after: string | undefined; ; ) {
    const page = await schedules.schedules(tenant, { after, limit: SCHEDULES_READ });
    found.push(...page.filter(({ schedule }) => schedule.automation === name).map(({ schedule }) => schedule.name));
    after = page.at(-1)?.schedule.name;
    if (page.length < SCHEDULES_READ || after === undefined) return found;
  }
}

/** The person who wrote the values stays their author when another person saves the automation with the same values. */
function authorOfInputs({ inputs }: Pick<Automation, 'inputs'>, before: Automation | undefined, person: string) {
  if (inputs === undefined) return {};
  if (!before || hashOf(before.inputs ?? null) !== hashOf(inputs)) return { author: person };
  return before.author === undefined ? {} : { author: before.author };
}
