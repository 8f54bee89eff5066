import { didYouMean } from '../../entry/did-you-mean.ts';
import { Problem } from '../../entry/http.ts';
import { type AutomationDefinition, destinationsOf, startsByEvent, triggersOf } from '../../pipeline/automation.ts';
import { checkEventName, type WebhookTrigger } from '../../pipeline/check-event-name.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import {
  type Instructed,
  instructedName,
  instructedWorkflow,
  isInstructedName,
} from '../../pipeline/instructed-workflow.ts';
import { hashOf } from '../../run/canonical-json.ts';
import { expressionProblems } from '../../workflow/checks/check-expressions.ts';
import { tried } from '../../workflow/checks/expression-limits.ts';
import type { Expressions } from '../../workflow/expressions/expressions.ts';
import { inputTemplateProblems } from '../../workflow/inputs.ts';
import type { PublishedWorkflow } from '../../workflow/workflow.ts';
import { namedBy } from './configurations.ts';

export interface AutomationChecks {
  definitions: Pick<
    Definitions,
    'sources' | 'workflow' | 'workflowVersions' | 'configurations' | 'connections' | 'people'
  >;
  expressions: Expressions;
}

/** Everything that an automation names must exist, so that its runs do not fail for it. */
export async function assertAutomationValid(
  ports: AutomationChecks,
  tenant: string,
  automation: AutomationDefinition,
): Promise<void> {
  await assertTriggersValid(ports, tenant, automation);
  if (automation.instructions === undefined) await assertWorkflow(ports, tenant, automation);
  else await assertInstructions(ports, tenant, { ...automation, instructions: automation.instructions });
  await assertConnections(ports, tenant, automation);
  await assertPeople(ports, tenant, automation);
  await assertConfigurations(ports, tenant, automation);
}

async function assertTriggersValid(
  ports: AutomationChecks,
  tenant: string,
  automation: AutomationDefinition,
): Promise<void> {
  const { trigger, triggers } = automation;
  // A client that read the automation sends both back.
  if (trigger && triggers && hashOf(trigger) !== hashOf(triggers[0])) {
    throw invalid('trigger: it is not the first of triggers; write only triggers');
  }
  const all = triggersOf(automation);
  if (all.length === 0) throw invalid('triggers: at least one is needed; { source: manual } if no event starts it');
  for (const [index, each] of all.entries()) {
    if (each.source !== 'manual') await assertTrigger(ports, tenant, each, triggers ? `triggers.${index}` : 'trigger');
  }
}

async function assertTrigger(ports: AutomationChecks, tenant: string, trigger: WebhookTrigger, at: string) {
  const [wrong] = expressionProblems(trigger.filter, { roots: ['trigger'], steps: new Set() });
  if (wrong) throw invalid(`${at}.filter: ${wrong.message}`);
  const [endless] = await tried(ports.expressions, tenant, trigger.filter);
  if (endless) throw invalid(`${at}.filter: ${endless.message}`);
  const unknown = checkEventName(trigger);
  if (unknown) throw invalid(`${at}.event: ${unknown}`);
  if (trigger.source !== 'generic') return;
  const [name = ''] = trigger.event.split('.');
  const names = (await ports.definitions.sources(tenant)).map((source) => source.name);
  assertKnown(`${at}.event`, 'webhook source', [name], names, 'define it with countersign sources save FILE');
}

async function assertWorkflow(
  ports: AutomationChecks,
  tenant: string,
  automation: AutomationDefinition,
): Promise<void> {
  const { name, version } = mustHaveWorkflow(automation);
  const published = await ports.definitions.workflow(tenant, name, version);
  if (published) return assertInputs(ports, tenant, automation, published);
  const [newest] = await ports.definitions.workflowVersions(tenant, name, { limit: 1 });
  const available = newest ? `the newest is ${newest.version}` : 'none is published';
  throw invalid(`there is no version ${version} of workflow ${name}; ${available}`);
}

export function mustHaveWorkflow({ name, workflow, session }: AutomationDefinition) {
  if (!workflow) throw invalid('name a workflow, or write instructions for a session');
  if (session) throw invalid('session: only with instructions; in a workflow, agent.session steps describe sessions');
  if (!isInstructedName(workflow.name)) return workflow;
  throw invalid(
    `workflow: ${workflow.name} is made from the instructions of an automation; write instructions in ${name}`,
  );
}

/** The session runs where `configuration` says: there is no step that could name another place. */
async function assertInstructions(
  ports: AutomationChecks,
  tenant: string,
  automation: AutomationDefinition & Instructed,
): Promise<void> {
  const { name, workflow, inputs, configuration } = automation;
  // A client that read the automation sends the workflow back that was made from its instructions.
  if (workflow && workflow.name !== instructedName(name)) {
    throw invalid('workflow: an automation has a workflow or instructions, not both; remove one');
  }
  if (inputs) throw invalid('inputs: only with a workflow; give values to a session in session.context');
  if (!configuration)
    throw invalid('configuration: say where its sessions run, like { strategy: fixed, default: NAME }');
  await mustRead(ports, tenant, automation);
}

export async function mustRead({ expressions }: AutomationChecks, tenant: string, automation: Instructed) {
  const read = await instructedWorkflow(expressions, tenant, automation);
  if ('workflow' in read) return read.workflow;
  throw invalid(read.problem);
}

/** An event gives no inputs, so its automation must give all that the workflow requires. Who starts a run may give them. */
async function assertInputs(
  { expressions }: AutomationChecks,
  tenant: string,
  automation: AutomationDefinition,
  workflow: PublishedWorkflow,
): Promise<void> {
  const { inputs = {} } = automation;
  const problems = [
    ...expressionProblems(inputs, { roots: ['trigger'], steps: new Set() }),
    ...inputTemplateProblems(workflow, inputs, { complete: startsByEvent(automation) }),
  ];
  const [wrong] = problems.length > 0 ? problems : await tried(expressions, tenant, inputs);
  if (wrong) throw invalid(`${['inputs', ...wrong.path].join('.')}: ${wrong.message}`);
}

async function assertConnections(
  { definitions }: AutomationChecks,
  tenant: string,
  { connections }: AutomationDefinition,
) {
  if (!connections || connections.length === 0) return;
  const names = (await definitions.connections(tenant)).map(({ name }) => name);
  assertKnown('connections', 'connection', connections, names, 'add it with countersign connections add');
}

async function assertPeople({ definitions }: AutomationChecks, tenant: string, automation: AutomationDefinition) {
  const named = destinationsOf(automation).flatMap((each) => ('person' in each ? [each.person] : []));
  if (named.length === 0) return;
  const ids = (await definitions.people(tenant)).map(({ id }) => id);
  assertKnown('notifications', 'person', named, ids, 'countersign people list shows all');
}

/** A model can only pick configurations that say what they are good at. */
async function assertConfigurations(
  { definitions }: AutomationChecks,
  tenant: string,
  automation: AutomationDefinition,
) {
  const { configuration } = automation;
  if (!configuration) return;
  const all = await definitions.configurations(tenant);
  const names = all.map(({ name }) => name);
  const hint = 'create it with countersign configurations save FILE';
  assertKnown('configuration', 'configuration', namedBy(automation), names, hint);
  if (configuration.strategy === 'fixed') return;
  const { allow } = configuration;
  // The contract refuses it too; a row of another release may have it.
  if (allow.length === 0) throw invalid('configuration.allow: name at least one configuration');
  if (all.some(({ name, routing }) => allow.includes(name) && routing !== undefined)) return;
  throw invalid(
    `configuration.allow: none of ${allow.join(', ')} has a routing description, so a model cannot pick one; add routing to one of them`,
  );
}

function assertKnown(at: string, what: string, wanted: readonly string[], known: readonly string[], hint: string) {
  const unknown = wanted.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw invalid(`${at}: there is no ${what} ${unknown}${didYouMean(unknown, known) || `; ${hint}`}`);
}

const invalid = (detail: string) => new Problem(422, 'AUTOMATION_INVALID', detail);
