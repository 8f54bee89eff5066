import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { handlePlan, type PlanPorts } from '../../../lambdas/api/definitions/plan.ts';
import type { HttpEvent } from '../../../lambdas/entry/http.ts';
import { parseWorkflow } from '../../../lambdas/workflow/parse-workflow.ts';
import { CountingIds } from '../../fakes/counting-ids.ts';
import { MemoryAgents } from '../../fakes/memory/memory-agents.ts';
import { MemoryPlanStore } from '../../fakes/memory/memory-plan-store.ts';
import { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import { MemoryStepQueue } from '../../fakes/memory/memory-step-queue.ts';
import { PlanningTable } from '../../plan/planning.ts';

const read = (path: string) => readFileSync(join(import.meta.dirname, '..', '..', '..', path), 'utf8');
const FILE = read('workflows/label-new-issue.yaml');
const ISSUE = JSON.parse(read('events/github-issue-opened.json'));
const INCIDENT = JSON.parse(read('events/servicenow-incident-p1.json'));

let table: PlanningTable;
beforeEach(async () => {
  table = new PlanningTable();
  await table.define();
  vi.stubGlobal('fetch', table.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

async function simulate(body: unknown, role = 'operator') {
  const event = {
    routeKey: 'POST /api/v1/workflows/simulate',
    body: JSON.stringify(body),
    requestContext: { authorizer: { lambda: { tenant: 'acme', person: 'oscar', role } } },
  } as unknown as HttpEvent;
  const ports: PlanPorts = {
    ...table.planner,
    definitions: table.definitions,
    agents: new MemoryAgents(),
    runs: new MemoryRunStore(),
    plans: new MemoryPlanStore(),
    queue: new MemoryStepQueue(table.clock),
    ids: new CountingIds(),
  };
  const answer = await handlePlan(ports, event);
  return { status: answer.statusCode, body: JSON.parse(answer.body ?? '') };
}

it('plans the text of a file, as the version it would become and with its author among the makers', async () => {
  await table.definitions.publishWorkflow('acme', parseWorkflow(FILE, 'f'), 1);
  const changed = FILE.replace('[triage]', '[new]');
  const { status, body } = await simulate({ workflow: changed, source: 'github', payload: ISSUE });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    workflow: { name: 'label-new-issue', version: 2 },
    trigger: { source: 'github', event: 'issues.opened' },
    outcome: 'runs',
    planHash: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect(table.policy.asked[0]?.request.action.makers).toContain('oscar');
});

it('plans the text of the newest version as that version', async () => {
  await table.definitions.publishWorkflow('acme', { ...parseWorkflow(FILE, 'f'), author: 'olivia' }, 1);
  const { body } = await simulate({ workflow: FILE, source: 'github', payload: ISSUE });
  expect(body.workflow.version).toBe(1);
  expect(table.policy.asked[0]?.request.action.makers).toContain('olivia');
});

it('plans a published version, the newest if none is named', async () => {
  const workflow = { ...parseWorkflow(FILE, 'f'), author: 'olivia' };
  await table.definitions.publishWorkflow('acme', workflow, 1);
  await table.definitions.publishWorkflow('acme', { ...workflow, description: 'second' }, 2);
  const plan = (version?: number) =>
    simulate({ workflow: { name: 'label-new-issue', version }, source: 'github', payload: ISSUE });
  expect((await plan()).body.workflow.version).toBe(2);
  expect((await plan(1)).body.workflow.version).toBe(1);
  await expect(plan(3)).rejects.toMatchObject({ status: 404 });
});

it('asks policy for the automation that runs the workflow, or for the given one', async () => {
  const trigger = { source: 'servicenow' as const, event: 'incident.insert' };
  const workflow = { name: 'label-new-issue', version: 1 };
  await table.definitions.saveAutomation('acme', { name: 'first', enabled: true, workspace: 'ops', trigger, workflow });
  const asked = async (automation?: string) => {
    await simulate({ workflow: FILE, source: 'github', payload: ISSUE, automation });
    const request = table.policy.asked.at(-1)?.request;
    return [request?.automation, request?.workspace];
  };
  expect(await asked()).toEqual(['first', 'ops']);
  expect(await asked('new')).toEqual(['new', 'default']);
});

it('reads ServiceNow events as the intake does', async () => {
  const workflow = 'name: x\nsteps:\n  - { id: a, tool: transform, with: { p: "{% trigger.priority %}" } }\n';
  const { body } = await simulate({ workflow, source: 'servicenow', payload: INCIDENT });
  expect(body).toMatchObject({ trigger: { event: 'incident.insert' }, steps: [{ input: { p: '1' } }] });
});

const RESTART = `name: restart
inputs: { service: { type: string, required: true }, replicas: { type: integer, default: 2 } }
steps:
  - id: a
    tool: transform
    with: { given: "{% inputs %}", title: "{% trigger.title %}", actor: "{% trigger.actor %}", about: "{% trigger.subject ?: 'nothing' %}" }
`;

it('without a source, plans a start by the caller, who is a maker', async () => {
  const { body } = await simulate({ workflow: RESTART, inputs: { service: 'payments' }, subject: 'payments' });
  const input = { given: { service: 'payments', replicas: 2 }, title: 'restart, started by oscar', actor: 'oscar' };
  expect(body).toMatchObject({
    trigger: { source: 'manual', event: 'run.requested' },
    outcome: 'runs',
    steps: [{ input: { ...input, about: 'payments' } }],
  });
});

it('plans a webhook of a source of the tenant as its definition reads it', async () => {
  const alerts = { name: 'alerts', enabled: true, title: '{% trigger.payload.alert %}' };
  await table.definitions.saveSource('acme', { ...alerts, event: '{% trigger.payload.state %}' });
  const workflow = 'name: x\nsteps:\n  - { id: a, tool: transform, with: { t: "{% trigger.title %}" } }\n';
  const generic = { workflow, source: 'generic', payload: { alert: 'Disk full', state: 'fired' } };
  const { body } = await simulate({ ...generic, sourceName: 'alerts' });
  expect(body).toMatchObject({ trigger: { event: 'alerts.fired' }, steps: [{ input: { t: 'Disk full' } }] });
  await expect(simulate({ ...generic, sourceName: 'alert' })).rejects.toMatchObject({
    status: 404,
    message: expect.stringContaining('did you mean "alerts"?'),
  });
});

it.each<[string, object, number, string, string]>([
  ['a required input is missing', {}, 422, 'INPUT_INVALID', 'inputs.service'],
  ['an input is unknown', { inputs: { servce: 'x' } }, 422, 'INPUT_INVALID', 'did you mean "service"'],
  ['a payload has no source', { payload: ISSUE }, 400, 'BAD_REQUEST', 'name the source of the payload'],
  ['a webhook has no payload', { source: 'github' }, 400, 'BAD_REQUEST', 'payload: the body of the webhook is missing'],
  ['a title is given for an event', { source: 'github', payload: ISSUE, title: 'x' }, 400, 'BAD_REQUEST', 'title'],
  ['a manual start names an event', { event: 'push' }, 400, 'BAD_REQUEST', 'only an event of GitHub'],
  ['a generic webhook has no name', { source: 'generic', payload: {} }, 400, 'BAD_REQUEST', 'sourceName'],
  ['the payload shows no event', { source: 'github', payload: {} }, 400, 'BAD_REQUEST', 'name the event'],
])('says what to do if %s', async (_what, change, status, code, sentence) => {
  const asked = simulate({ workflow: RESTART, ...change });
  await expect(asked).rejects.toMatchObject({ status, code, message: expect.stringContaining(sentence) });
});

it.each<[string, object, number, string]>([
  ['a workflow that is wrong', { workflow: 'name: x\nsteps: []\n' }, 422, 'WORKFLOW_INVALID'],
  ['a workflow nobody published', { workflow: { name: 'x' } }, 404, 'NOT_FOUND'],
  ['a payload of another source', { source: 'servicenow' }, 400, 'BAD_REQUEST'],
  ['an unknown source', { source: 'jira' }, 400, 'BAD_REQUEST'],
  ['an unknown field', { dry: true }, 400, 'BAD_REQUEST'],
])('refuses %s', async (_what, change, status, code) => {
  const asked = simulate({ workflow: FILE, source: 'github', payload: ISSUE, ...change });
  await expect(asked).rejects.toMatchObject({ status, code });
});

it.each(['approver', 'member', 'auditor'])('shows a %s nothing of the targets', async (role) => {
  const asked = simulate({ workflow: FILE, source: 'github', payload: ISSUE }, role);
  await expect(asked).rejects.toMatchObject({ status: 403 });
  expect(table.outside.calls).toEqual([]);
});

it('warns of commands that no list allows or no agent could run, with the values that the run would have', async () => {
  const input = '{command: /usr/bin/systemctl, args: [restart, "{% trigger.title %}"], environment: staging}';
  const file = `name: restart\nsteps:\n  - {id: restart, tool: agent.command, with: ${input}}\n`;
  const { status, body } = await simulate({ workflow: file, source: 'manual', title: 'web' });
  expect({ status, warnings: body.warnings }).toEqual({
    status: 200,
    warnings: [
      expect.stringContaining('the allow list does not have /usr/bin/systemctl'),
      expect.stringContaining('no agent is enrolled'),
    ],
  });
});
