import type { StoredConfiguration } from '../../lambdas/pipeline/configuration.ts';
import type { Automation, Definitions } from '../../lambdas/pipeline/definitions.ts';
import type { Run } from '../../lambdas/run/run.ts';
import { Workflow, WorkflowStep } from '../../lambdas/workflow/workflow.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { BY_SETUP } from '../fakes/memory/memory-changes.ts';
import { FakeTargets } from '../fakes/targets/fake-targets.ts';
import { BURST_EVENT } from './actors/senders.ts';
import { AUTHOR, PEOPLE } from './actors/simulated-people.ts';
import { ALLOWED_COMMAND, STAGING_PROFILE } from './invariants/agents.ts';
import { SCHEDULED } from './invariants/schedules.ts';
import { type Scenario, THREAD_SHAPE } from './scenario.ts';
import { workflowOfShape } from './workflow-shapes.ts';

const BURST_SHAPES = [
  { workflow: Workflow.parse({ name: 'pull-request', steps: [{ id: 'facts', tool: 'transform' }] }) },
  {
    workflow: Workflow.parse({ name: 'pull-request-app', steps: [{ id: 'facts', tool: 'transform' }] }),
    filter: '{% $exists(trigger.payload.installation) %}',
  },
];

export const NOTICES_CHANNEL = '#notices';
const SCHEDULED_WORKFLOW = Workflow.parse({ name: SCHEDULED, steps: [{ id: 'facts', tool: 'transform' }] });

/** Where sessions run. */
const CONFIGURATIONS: readonly StoredConfiguration[] = [
  {
    name: 'bot',
    session: { provider: 'a2a', url: 'http://sessions/agent', connection: 'sessions' },
    revision: 1,
  },
  {
    name: 'hosts',
    session: {
      provider: 'agent',
      command: ALLOWED_COMMAND,
      args: ['session'],
      environment: 'staging',
      capabilities: [],
    },
    revision: 1,
  },
];

/** The planner reads the connections. */
const ACCESS = Object.entries(new FakeTargets(new FakeClock()).access());

/** What is published in a simulation, for the invariants. */
export interface Published {
  workflow(run: Run): Workflow | undefined;
  /** There is a newer version than the one that this run is pinned to. */
  isOutdated(run: Run): boolean;
  /** Publishes the next version of every workflow; open runs continue with their version. */
  deploy(): void;
}

export function publishDefinitions(definitions: Definitions, scenario: Scenario): Published {
  const { tenants, shapes, settings, bursts, scheduledForMs, threads } = scenario;
  const known = new Map<string, Workflow>();
  const publish = (workflow: Workflow, version: number, trigger: Automation['trigger'], workspace: string) => {
    known.set(`${workflow.name} ${version}`, workflow);
    for (const tenant of tenants) {
      definitions.publishWorkflow(tenant, { ...workflow, author: AUTHOR }, version, BY_SETUP);
      const { name } = workflow;
      definitions.saveAutomation(
        tenant,
        { name, enabled: true, workspace, trigger, workflow: { name, version }, ...notifiedOf(name) },
        BY_SETUP,
      );
    }
  };
  const publishAll = (version: number, of: (workflow: Workflow) => Workflow) => {
    for (const [index, shape] of shapes.entries()) {
      const filter = `{% trigger.payload.record.shape = "${shape}" %}`;
      const trigger = { source: 'servicenow', event: 'incident.insert', filter } as const;
      publish(of(workflowOfShape(shape)), version, trigger, index === 0 ? 'first' : 'second');
    }
    if (threads && !shapes.includes(THREAD_SHAPE)) {
      publish(of(workflowOfShape(THREAD_SHAPE)), version, { source: 'manual' }, 'second');
    }
    if (scheduledForMs !== undefined) publish(of(SCHEDULED_WORKFLOW), version, { source: 'manual' }, 'second');
    for (const { workflow, ...filter } of bursts > 0 ? BURST_SHAPES : []) {
      publish(of(workflow), version, { source: 'github', event: BURST_EVENT, ...filter }, 'first');
    }
  };
  for (const tenant of tenants) {
    definitions.saveSettings(tenant, settings, BY_SETUP);
    definitions.saveProfile(tenant, STAGING_PROFILE, BY_SETUP);
    for (const configuration of CONFIGURATIONS) definitions.saveConfiguration(tenant, configuration, BY_SETUP);
    for (const [name, { baseUrl, instance }] of scenario.repeats ? ACCESS : []) {
      definitions.saveConnection(tenant, { name, baseUrl, instance }, BY_SETUP);
    }
    for (const person of PEOPLE) definitions.savePerson(tenant, person, BY_SETUP);
  }
  publishAll(1, (workflow) => workflow);
  return {
    // An action has one step of its own.
    workflow: ({ workflow: { name, version }, request }) =>
      request?.action ? undefined : known.get(`${name} ${version}`),
    isOutdated: ({ workflow: { name, version } }) => known.has(`${name} ${version + 1}`),
    deploy: () =>
      publishAll(2, (workflow) => ({
        ...workflow,
        steps: [WorkflowStep.parse({ id: 'since_two', tool: 'transform', needs: [] }), ...workflow.steps],
      })),
  };
}

/** Further destinations of the runs of threads. */
const notifiedOf = (name: string): Pick<Automation, 'notifications'> =>
  name === THREAD_SHAPE
    ? {
        notifications: [
          { type: 'slack_channel', channel: NOTICES_CHANNEL },
          { type: 'slack_dm_user', person: 'ana' },
        ],
      }
    : {};
