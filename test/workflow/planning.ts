import { NO_SETTINGS, type TenantSettings } from '../../lambdas/run/caps.ts';
import type { Trigger } from '../../lambdas/run/run.ts';
import { parseWorkflow } from '../../lambdas/workflow/parse-workflow.ts';
import { type Plan, type PlannedStep, type Planner, planRun } from '../../lambdas/workflow/plan.ts';
import { FakeClock, STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { FakeOutside } from '../fakes/fake-outside.ts';
import { FakePolicy } from '../fakes/fake-policy.ts';
import { MemoryConnections } from '../fakes/memory-connections.ts';
import { MemoryDefinitions } from '../fakes/memory-definitions.ts';

export const SYS_ID = '9d385017c611228701d22104cc95c371';
const TENANT = 'acme';

interface Change {
  planner?: Partial<Planner>;
  /** What the event says. */
  fields?: Record<string, unknown>;
}

/** A tenant with an incident and an issue, and a planner that sees them. */
export class PlanningTable {
  readonly clock = new FakeClock();
  readonly outside = new FakeOutside(this.clock);
  readonly policy = new FakePolicy();
  readonly definitions = new MemoryDefinitions();
  readonly planner: Planner = {
    definitions: this.definitions,
    connections: new MemoryConnections({ [TENANT]: this.outside.access() }),
    policy: this.policy,
    environment: 'dev',
    region: 'eu-west-1',
    clock: this.clock,
    hasTime: () => true,
  };

  constructor() {
    this.outside.incidents.set(SYS_ID, { fields: { state: '1', assignment_group: 'desk' }, workNotes: [] });
    this.outside.issueLabels.set('octo-org/payments#7', ['bug']);
  }

  async define(settings: Partial<TenantSettings> = {}): Promise<void> {
    for (const [name, { baseUrl, instance }] of Object.entries(this.outside.access())) {
      await this.definitions.saveConnection(TENANT, { name, baseUrl, instance });
    }
    await this.definitions.saveSettings(TENANT, { ...NO_SETTINGS, ...settings });
    await this.definitions.savePerson(TENANT, {
      id: 'ana',
      name: 'Ana',
      role: 'member',
      tier: 'medium',
      groups: [],
      identities: ['github:ana-dev'],
    });
  }

  plan(yaml: string, { planner, fields }: Change = {}): Promise<Plan> {
    const trigger: Trigger = {
      source: 'github',
      event: 'issues.opened',
      fields: fields ?? { title: 'Checkout fails', actor: 'ana-dev', sysId: SYS_ID, number: 7 },
      payload: {},
      receivedAt: STORY_BEGINS_AT,
    };
    const workflow = { ...parseWorkflow(yaml, 'plan.yaml'), author: 'olivia' };
    const request = { tenant: TENANT, automation: 'triage', workspace: 'default', workflow, version: 3, trigger };
    return planRun({ ...this.planner, ...planner }, request);
  }
}

/** A step of a plan by its id, and known to be of a kind. */
export function stepOf<Kind extends PlannedStep['kind']>(plan: Plan, id: string, kind: Kind) {
  const step = plan.steps.find((each) => each.id === id);
  if (step?.kind !== kind) throw new Error(`${id} is ${JSON.stringify(step)}`);
  return step as Extract<PlannedStep, { kind: Kind }>;
}
