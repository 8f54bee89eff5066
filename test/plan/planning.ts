import { findOperation } from '../../lambdas/connectors/registry.ts';
import { type Plan, type PlannedStep, type Planner, planRun } from '../../lambdas/plan/plan.ts';
import { RECEIPT_SCHEMA_VERSION, type Receipt, type SucceededReceipt } from '../../lambdas/run/receipt.ts';
import type { Trigger } from '../../lambdas/run/run.ts';
import { NO_SETTINGS, type TenantSettings } from '../../lambdas/run/settings/caps.ts';
import { parseWorkflow } from '../../lambdas/workflow/parse-workflow.ts';
import { FakeClock, STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { FakePolicy } from '../fakes/fake-policy.ts';
import { MemoryConnections } from '../fakes/memory/memory-connections.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';
import { OwnThreadExpressions } from '../fakes/own-thread-expressions.ts';
import { FakeTargets } from '../fakes/targets/fake-targets.ts';

export const SYS_ID = '9d385017c611228701d22104cc95c371';
const TENANT = 'acme';

const RECEIPT: Omit<SucceededReceipt, 'tenant' | 'key' | 'runId' | 'tool' | 'target' | 'effect'> = {
  schemaVersion: RECEIPT_SCHEMA_VERSION,
  stepId: 'written',
  stepIndex: 0,
  fields: [],
  requestHash: '',
  attempt: 1,
  leaseVersion: 1,
  intentAt: STORY_BEGINS_AT,
  openSince: STORY_BEGINS_AT,
  settledAt: STORY_BEGINS_AT,
  outcome: 'succeeded',
  output: { sysId: SYS_ID, number: 'INC0010001' },
  reversal: { irreversible: 'not asked for' },
  response: {},
};

interface Change {
  planner?: Partial<Planner>;
  /** What the event says. */
  fields?: Record<string, unknown>;
}

/** A tenant with an incident and an issue, and a planner that sees them. */
export class PlanningTable {
  readonly clock = new FakeClock();
  readonly outside = new FakeTargets(this.clock);
  readonly policy = new FakePolicy();
  readonly definitions = new MemoryDefinitions();
  /** Of the writes that runs have made before, by key. */
  readonly receipts = new Map<string, Receipt>();
  readonly planner: Planner = {
    definitions: this.definitions,
    connections: new MemoryConnections({ [TENANT]: this.outside.access() }),
    runs: { receipts: async (_tenant, keys) => keys.flatMap((key) => this.receipts.get(key) ?? []) },
    expressions: new OwnThreadExpressions(() => this.clock.now()),
    policy: this.policy,
    environment: 'dev',
    region: 'eu-west-1',
    clock: this.clock,
    log: new MemoryLog(),
    hasTime: () => true,
  };

  constructor() {
    this.outside.incidents.set(SYS_ID, {
      fields: { state: '1', category: 'desk', assignment_group: '' },
      workNotes: [],
    });
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

  /** A run has made this write, with this response. */
  madeBy(runId: string, tool: string, input: unknown, more: Partial<SucceededReceipt> = {}): void {
    const operation = findOperation(tool);
    if (!operation) throw new Error(`there is no ${tool}`);
    const { key, target } = operation.propose(operation.parse(input), TENANT);
    this.receipts.set(key, {
      ...RECEIPT,
      ...{ tenant: TENANT, key, runId, tool, target, effect: operation.effect },
      ...more,
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
