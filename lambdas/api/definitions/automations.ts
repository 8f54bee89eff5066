import { didYouMean } from '../../entry/did-you-mean.ts';
import { Problem } from '../../entry/http.ts';
import type { Clock, Ids } from '../../entry/ports.ts';
import { CHANGES_SEEN_WITHIN_MS } from '../../pipeline/cached-definitions.ts';
import { checkEventName, type WebhookTrigger } from '../../pipeline/check-event-name.ts';
import type { Automation, Definitions } from '../../pipeline/definitions.ts';
import { hashOf } from '../../run/canonical-json.ts';
import { expressionProblems } from '../../workflow/checks/check-expressions.ts';
import { tried } from '../../workflow/checks/expression-limits.ts';
import type { Expressions } from '../../workflow/expressions/expressions.ts';
import { inputTemplateProblems } from '../../workflow/inputs.ts';
import type { PublishedWorkflow } from '../../workflow/workflow.ts';
import type { automationRoutes } from '../contract/automations.ts';
import { type Paged, pageOf, readPage } from '../paging/paging.ts';
import type { Handlers } from '../router.ts';
import { authorOf } from './change-person.ts';

export interface AutomationsPorts extends Paged {
  definitions: Pick<Definitions, 'automations' | 'sources' | 'saveAutomation' | 'workflow' | 'workflowVersions'>;
  clock: Clock;
  ids: Ids;
  expressions: Expressions;
}

export const automationHandlers: Handlers<AutomationsPorts, typeof automationRoutes> = {
  async listAutomations(ports, { caller: { tenant }, query }) {
    // Every webhook reads all of them too, so a tenant has few.
    const all = await ports.definitions.automations(tenant);
    const page = await readPage(ports, `${tenant}/automations`, query, (place) =>
      pageOf(all, place, ({ name }) => name),
    );
    return { status: 200, body: { automations: page.items, nextCursor: page.nextCursor } };
  },

  async getAutomation({ definitions }, { caller: { tenant }, params: { name } }) {
    const all = await definitions.automations(tenant);
    const found = all.find((automation) => automation.name === name);
    if (found) return { status: 200, body: found };
    const names = all.map((automation) => automation.name);
    throw new Problem(404, 'NOT_FOUND', `there is no automation ${name}${didYouMean(name, names)}`);
  },

  async saveAutomation(ports, { caller, params: { name }, body }) {
    if (body.name !== undefined && body.name !== name) {
      throw new Problem(400, 'BAD_REQUEST', `the body has the name ${body.name}, the path has ${name}`);
    }
    const before = (await ports.definitions.automations(caller.tenant)).find((each) => each.name === name);
    const automation = { ...body, name, ...authorOfInputs(body, before, caller.person) };
    await assertValid(ports, caller.tenant, automation);
    await ports.definitions.saveAutomation(caller.tenant, automation, authorOf(ports, caller));
    return { status: 200, body: { ...automation, effectiveWithinSeconds: CHANGES_SEEN_WITHIN_MS / 1000 } };
  },
};

/** The person who wrote the values stays their author when another person saves the automation with the same values. */
function authorOfInputs({ inputs }: Pick<Automation, 'inputs'>, before: Automation | undefined, person: string) {
  if (inputs === undefined) return {};
  if (!before || hashOf(before.inputs ?? null) !== hashOf(inputs)) return { author: person };
  return before.author === undefined ? {} : { author: before.author };
}

async function assertValid(ports: AutomationsPorts, tenant: string, automation: Automation): Promise<void> {
  const { trigger, workflow } = automation;
  if (trigger.source !== 'manual') await assertTriggerValid(ports, tenant, trigger);
  const { name, version } = workflow;
  const published = await ports.definitions.workflow(tenant, name, version);
  if (published) return assertInputs(ports, tenant, automation, published);
  const [newest] = await ports.definitions.workflowVersions(tenant, name, { limit: 1 });
  const available = newest ? `the newest is ${newest.version}` : 'none is published';
  throw invalid(`there is no version ${version} of workflow ${name}; ${available}`);
}

/** An event gives no inputs, so its automation must give all that the workflow requires. Who starts a run may give them. */
async function assertInputs(
  { expressions }: AutomationsPorts,
  tenant: string,
  { inputs = {}, trigger }: Automation,
  workflow: PublishedWorkflow,
): Promise<void> {
  const problems = [
    ...expressionProblems(inputs, { roots: ['trigger'], steps: new Set() }),
    ...inputTemplateProblems(workflow, inputs, { complete: trigger.source !== 'manual' }),
  ];
  const [wrong] = problems.length > 0 ? problems : await tried(expressions, tenant, inputs);
  if (wrong) throw invalid(`${['inputs', ...wrong.path].join('.')}: ${wrong.message}`);
}

async function assertTriggerValid(ports: AutomationsPorts, tenant: string, trigger: WebhookTrigger): Promise<void> {
  const [wrong] = expressionProblems(trigger.filter, { roots: ['trigger'], steps: new Set() });
  if (wrong) throw invalid(`trigger.filter: ${wrong.message}`);
  const [endless] = await tried(ports.expressions, tenant, trigger.filter);
  if (endless) throw invalid(`trigger.filter: ${endless.message}`);
  const unknown = checkEventName(trigger);
  if (unknown) throw invalid(`trigger.event: ${unknown}`);
  if (trigger.source !== 'generic') return;
  const [name = ''] = trigger.event.split('.');
  const names = (await ports.definitions.sources(tenant)).map((source) => source.name);
  if (names.includes(name)) return;
  const known = didYouMean(name, names) || '; define it with countersign sources save FILE';
  throw invalid(`trigger.event: there is no webhook source ${name}${known}`);
}

const invalid = (detail: string) => new Problem(422, 'AUTOMATION_INVALID', detail);
