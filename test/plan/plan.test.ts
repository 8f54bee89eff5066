import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { appliedPlan } from '../../lambdas/plan/applied-plan.ts';
import type { PolicyDecision } from '../../lambdas/policy/policy.ts';
import { hashOf } from '../../lambdas/run/canonical-json.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { MemoryConnections } from '../fakes/memory/memory-connections.ts';
import { PlanningTable, SYS_ID, stepOf } from './planning.ts';

let table: PlanningTable;
beforeEach(async () => {
  table = new PlanningTable();
  await table.define();
  vi.stubGlobal('fetch', table.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const UNKNOWN = '(known after apply)';
const grounds = { policyHash: 'test', policies: ['p'], reasons: ['because'] };
const DENIED: PolicyDecision = { verdict: 'deny', code: 'POLICY_DENIED', ...grounds };
const ASKS: PolicyDecision = {
  verdict: 'needs_approval',
  requirement: { tier: 'medium', quorum: 2, groups: [['sre']] },
  ...grounds,
};

const steps = (...lines: string[]) => `name: example\nsteps:\n${lines.map((line) => `  - ${line}\n`).join('')}`;
const UPDATE = (id: string, group: string, more = '') =>
  `{ id: ${id}, tool: servicenow.incident.update, with: { sysId: ${SYS_ID}, fields: { category: "${group}" } }${more} }`;
const NOTE = (id: string, note: string, more = '') =>
  `{ id: ${id}, tool: servicenow.incident.add_work_note, with: { sysId: ${SYS_ID}, note: "${note}" }${more} }`;
const LABEL = (id: string, label: string, more = '') =>
  `{ id: ${id}, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: ["${label}"] }${more} }`;

describe('a plan', () => {
  it('shows the target and the values before and after of each write, and writes nothing', async () => {
    const plan = await table.plan(steps(UPDATE('assign', 'network'), LABEL('label', 'triage'), NOTE('note', 'seen')));
    expect(stepOf(plan, 'assign', 'call')).toMatchObject({
      target: `servicenow:acme:incident:${SYS_ID}`,
      before: { category: 'desk' },
      after: { category: 'network' },
      beforeHash: hashOf({ category: 'desk' }),
      reversible: true,
      provisional: false,
      outcome: 'runs',
    });
    expect(stepOf(plan, 'label', 'call')).toMatchObject({ before: { triage: false }, after: { triage: true } });
    expect(stepOf(plan, 'note', 'call')).toMatchObject({ before: null, beforeHash: null, reversible: false });
    expect(plan).toMatchObject({ outcome: 'runs', writes: { planned: 3, max: null }, title: 'Checkout fails' });
    expect(table.outside.calls.map(({ name }) => name)).toEqual(['GET servicenow', 'GET github']);
  });

  it('asks policy about the same action as the worker', async () => {
    await table.plan(steps(NOTE('first', 'one'), UPDATE('assign', 'network', ', risk: high')));
    expect(table.policy.asked.at(-1)?.request).toEqual({
      tenant: 'acme',
      automation: 'triage',
      workspace: 'default',
      workflow: { name: 'example', version: 3 },
      source: 'github',
      writesBefore: 1,
      at: STORY_BEGINS_AT,
      trigger: expect.objectContaining({ event: 'issues.opened' }),
      before: { fields: { category: 'desk' }, omitted: [] },
      action: {
        tool: 'servicenow.incident.update',
        connector: 'servicenow',
        instance: 'acme',
        target: `servicenow:acme:incident:${SYS_ID}`,
        fields: { category: 'network' },
        effect: 'natural',
        risk: 'high',
        blastRadius: 'low',
        environment: 'dev',
        destructive: false,
        reversible: true,
        undo: false,
        makers: ['ana', 'olivia'],
      },
    });
  });

  it('shows required approvals and denials; steps after a denial are not reached', async () => {
    table.policy.decision = ({ action }) => (action.connector === 'github' ? DENIED : ASKS);
    const plan = await table.plan(steps(NOTE('note', 'seen'), LABEL('label', 'triage'), UPDATE('assign', 'network')));
    expect(stepOf(plan, 'note', 'call')).toMatchObject({
      outcome: 'needs_approval',
      gate: { asks: 'policy', tier: 'medium', quorum: 2, groups: [['sre']] },
      reached: true,
    });
    expect(stepOf(plan, 'label', 'call')).toMatchObject({ outcome: 'denied', gate: null, decision: DENIED });
    expect(stepOf(plan, 'assign', 'call').reached).toBe(false);
    expect(plan).toMatchObject({ outcome: 'denied', writes: { planned: 1 } });
  });

  it('shows the approvals that a validation mode or the rule of two adds', async () => {
    const perPhase = await table.plan(
      `validation: { mode: per_phase }\n${steps(NOTE('one', '1'), NOTE('two', '2'), NOTE('check', '3', ', phase: postchecks'))}`,
    );
    const gates = perPhase.steps.map((step) => (step.kind === 'call' ? step.gate?.asks : undefined));
    expect(gates).toEqual(['mode', undefined, 'mode']);
    const two = await table.plan(steps(NOTE('wide', 'seen', ', blastRadius: high')));
    expect(stepOf(two, 'wide', 'call').gate).toEqual({ asks: 'always_two', tier: 'high', quorum: 2, groups: [] });
  });

  it('assumes the values that earlier steps would have written', async () => {
    const plan = await table.plan(steps(UPDATE('first', 'network'), UPDATE('second', 'database')));
    expect(stepOf(plan, 'second', 'call')).toMatchObject({
      before: { category: 'network' },
      after: { category: 'database' },
    });
  });

  it('shows an approval step with its requirement', async () => {
    const plan = await table.plan(
      steps(
        '{ id: gate, tool: approval, with: { message: "About {% trigger.number %} in {% run.id %}", tier: high } }',
      ),
    );
    expect(stepOf(plan, 'gate', 'gate')).toMatchObject({
      gate: { asks: 'step', tier: 'high', quorum: 1, groups: [] },
      message: `About 7 in ${UNKNOWN}`,
    });
    expect(plan.outcome).toBe('needs_approval');
  });
});

describe('a duplicate write', () => {
  const UPDATED = { sysId: SYS_ID, fields: { category: 'desk' } };
  const tool = 'servicenow.incident.update';

  it('is not planned, asked about or counted; its output is known', async () => {
    table.policy.decision = () => ASKS;
    table.madeBy('run_1', tool, UPDATED);
    const plan = await table.plan(
      steps(UPDATE('assign', 'desk'), '{ id: use, tool: transform, with: { n: "{% steps.assign.output.number %}" } }'),
    );
    expect(stepOf(plan, 'assign', 'call')).toMatchObject({ madeBy: { runId: 'run_1' }, gate: null, outcome: 'runs' });
    expect(stepOf(plan, 'use', 'inner').input).toEqual({ n: 'INC0010001' });
    expect(plan).toMatchObject({ outcome: 'runs', writes: { planned: 0 } });
  });

  it.each<[string, () => void]>([
    ['the target no longer shows', () => table.madeBy('run_1', tool, { ...UPDATED, fields: { category: 'network' } })],
    ['was made in part', () => table.madeBy('run_1', tool, UPDATED, { incomplete: 'state was left' })],
    ['is being undone', () => table.madeBy('run_1', tool, UPDATED, { undoBegunAt: STORY_BEGINS_AT })],
  ])('is planned if it %s', async (_what, given) => {
    given();
    const plan = await table.plan(steps(UPDATE('one', 'desk'), UPDATE('two', 'network')));
    expect(plan.steps).toMatchObject([{ madeBy: null }, { madeBy: null }]);
    expect(plan.writes.planned).toBe(2);
  });

  it('counts for a day if the target shows no trace of it', async () => {
    table.madeBy('run_1', 'servicenow.incident.add_work_note', { sysId: SYS_ID, note: 'seen' });
    table.clock.advance(24 * 3600 * 1000);
    expect(stepOf(await table.plan(steps(NOTE('note', 'seen'))), 'note', 'call').madeBy).toEqual({ runId: 'run_1' });
    table.clock.advance(1);
    expect(stepOf(await table.plan(steps(NOTE('note', 'seen'))), 'note', 'call').madeBy).toBeNull();
  });

  it('is still denied if policy says so', async () => {
    table.policy.decision = () => DENIED;
    table.madeBy('run_1', tool, UPDATED);
    const plan = await table.plan(steps(UPDATE('assign', 'desk')));
    expect(stepOf(plan, 'assign', 'call')).toMatchObject({ outcome: 'denied', madeBy: null });
  });

  it('is planned if the step deduplicates per run, or its values are not known yet', async () => {
    table.madeBy('run_1', 'servicenow.incident.add_work_note', { sysId: SYS_ID, note: 'seen' });
    table.madeBy('run_1', 'servicenow.incident.add_work_note', { sysId: SYS_ID, note: UNKNOWN });
    const plan = await table.plan(steps(NOTE('own', 'seen', ', dedupeScope: run'), NOTE('late', '{% run.id %}')));
    expect(plan.steps).toMatchObject([{ madeBy: null }, { madeBy: null }]);
  });

  it('may be made by an earlier step, if that one surely runs', async () => {
    const twice = await table.plan(steps(NOTE('one', 'seen'), NOTE('two', 'seen')));
    expect(stepOf(twice, 'two', 'call').madeBy).toEqual({ step: 'one' });
    expect(twice.writes.planned).toBe(1);
    const perhaps = await table.plan(
      steps(NOTE('first', '1'), NOTE('one', 'seen', ', when: "{% steps.first.output.x %}"'), NOTE('two', 'seen')),
    );
    expect(stepOf(perhaps, 'two', 'call').madeBy).toBeNull();
  });
});

describe('a value that only the run will know', () => {
  it('is marked, and so is everything that depends on it; the rest is shown', async () => {
    const plan = await table.plan(
      steps(
        UPDATE('assign', 'network'),
        '{ id: facts, tool: transform, with: { a: "{% steps.assign.output.number %}", b: "{% trigger.number + 1 %}" } }',
        NOTE('note', '{% steps.facts.output.a %} and {% steps.facts.output.b %} of {% run.id %}'),
        UPDATE('again', '{% steps.facts.output.a %}'),
      ),
    );
    expect(stepOf(plan, 'facts', 'inner').input).toEqual({ a: UNKNOWN, b: 8 });
    expect(stepOf(plan, 'note', 'call')).toMatchObject({
      fields: { note: `${UNKNOWN} and 8 of ${UNKNOWN}` },
      provisional: true,
    });
    expect(stepOf(plan, 'again', 'call')).toMatchObject({
      before: { category: 'network' },
      after: { category: UNKNOWN },
      provisional: true,
    });
  });

  it('may be the target: then nothing is read, and policy is asked about the known values', async () => {
    const plan = await table.plan(
      steps(
        NOTE('first', 'one'),
        '{ id: next, tool: servicenow.incident.update, with: { sysId: "{% steps.first.output.sysId %}", fields: { state: "2" } } }',
      ),
    );
    expect(stepOf(plan, 'next', 'call')).toMatchObject({
      target: `servicenow:${UNKNOWN}`,
      fields: { sysId: UNKNOWN, fields: { state: '2' } },
      before: null,
      unread: 'the target is known after apply',
    });
    expect(table.policy.asked).toHaveLength(2);
    expect(table.outside.calls).toEqual([]);
  });

  it('may be whether a step runs at all', async () => {
    const plan = await table.plan(
      steps(
        NOTE('first', 'one'),
        NOTE('maybe', 'two', ', when: "{% steps.first.output.sysId = \'x\' %}"'),
        NOTE('never', 'three', ', when: "{% trigger.number = 8 %}"'),
        '{ id: was, tool: transform, with: { never: "{% steps.never.output %}", maybe: "{% steps.maybe.output %}" } }',
      ),
    );
    expect(stepOf(plan, 'maybe', 'call').conditional).toBe(true);
    expect(stepOf(plan, 'never', 'skipped').conditional).toBe(false);
    expect(stepOf(plan, 'was', 'inner').input).toEqual({ never: null, maybe: UNKNOWN });
    expect(plan.writes.planned).toBe(2);
  });

  it('is not one that can be read: reads are made, if policy allows them', async () => {
    const read = `{ id: now, tool: servicenow.incident.get, with: { sysId: ${SYS_ID}, fields: [state] } }`;
    const use = '{ id: use, tool: transform, with: { state: "{% steps.now.output.fields.state %}" } }';
    const plan = await table.plan(steps(read, use));
    expect(stepOf(plan, 'use', 'inner').input).toEqual({ state: '1' });
    expect(plan.writes.planned).toBe(0);
    table.policy.decision = () => ASKS;
    table.outside.calls.length = 0;
    expect(stepOf(await table.plan(steps(read, use)), 'use', 'inner').input).toEqual({ state: UNKNOWN });
    expect(table.outside.calls).toEqual([]);
  });

  it('is one that an earlier step would have changed before it is read', async () => {
    const read = `{ id: now, tool: servicenow.incident.get, with: { sysId: ${SYS_ID}, fields: [category] } }`;
    const use = '{ id: use, tool: transform, with: { is: "{% steps.now.output.fields.category %}" } }';
    const plan = await table.plan(steps(UPDATE('assign', 'network'), read, use));
    expect(stepOf(plan, 'now', 'call').unread).toBe('an earlier step would have changed it by then');
    expect(stepOf(plan, 'use', 'inner').input).toEqual({ is: UNKNOWN });
  });

  it('is the answer of a model: a plan costs nothing', async () => {
    const plan = await table.plan(
      steps(
        '{ id: ask, tool: model.invoke, with: { prompt: "Which group?" } }',
        UPDATE('assign', "{% steps.ask.output.text = 'net' ? 'network' : 'ops' %}").replace(
          'category',
          'assignment_group',
        ),
      ),
    );
    expect(stepOf(plan, 'assign', 'call')).toMatchObject({
      fields: { assignment_group: UNKNOWN },
      derived: [{ field: 'fields.assignment_group', how: 'chosen', from: ['ask'] }],
      gate: { asks: 'tainted', quorum: 1 },
    });
    expect(table.outside.calls.map(({ name }) => name)).toEqual(['GET servicenow']);
  });
});

describe('a record that a workflow gives by name', () => {
  const [DATABASE, DESK] = ['a'.repeat(32), 'd'.repeat(32)];
  const ASSIGN = (group: string) => steps(UPDATE('assign', group).replace('category', 'assignment_group'));
  beforeEach(() => {
    const groups = [DATABASE, DESK].map((sys_id) => ({ sys_id, name: sys_id === DESK ? 'Service Desk' : 'Database' }));
    table.outside.records.set('sys_user_group', new Map(groups.map((row) => [row.sys_id, row])));
  });

  it('is planned with its id, and the plan says so', async () => {
    const plan = await table.plan(ASSIGN('Database'));
    expect(stepOf(plan, 'assign', 'call')).toMatchObject({
      fields: { assignment_group: DATABASE },
      after: { assignment_group: DATABASE },
      names: { assignment_group: { [DATABASE]: 'Database' } },
      foundByName: ['assignment_group'],
      provisional: false,
    });
    expect(table.policy.asked.at(-1)?.request.action.fields).toEqual({ assignment_group: DATABASE });
    expect(stepOf(await table.plan(ASSIGN(DATABASE)), 'assign', 'call').foundByName).toBeUndefined();
  });

  it('fails the plan if there is no such record', async () => {
    const plan = await table.plan(ASSIGN('Databse'));
    expect(plan.outcome).toBe('fails');
    const message = expect.stringContaining('similar names: "Database"');
    expect(stepOf(plan, 'assign', 'failing').error).toEqual({ code: 'INPUT_INVALID', message });
  });

  it.each([
    ['ServiceNow cannot be read', () => table.outside.next('GET servicenow', { status: 403 }), {}],
    ['no time is left', () => {}, { hasTime: () => false }],
  ])('stays a name that the run looks up if %s; such a plan cannot be applied', async (_why, fail, planner) => {
    fail();
    const plan = await table.plan(ASSIGN('Database'), { planner });
    expect(stepOf(plan, 'assign', 'call')).toMatchObject({
      fields: { assignment_group: 'Database' },
      provisional: true,
      unread: expect.stringContaining('assignment_group was not found by name'),
    });
    expect(() => appliedPlan(plan)).toThrow('this plan cannot be applied');
  });
});

describe('a plan of a run that would fail', () => {
  it.each([
    ['an expression that fails', '{ id: bad, tool: transform, with: { x: "{% $error(1) %}" } }', 'EXPRESSION_FAILED'],
    ['a condition that is none', NOTE('bad', 'x', ', when: "{% trigger.title %}"'), 'EXPRESSION_FAILED'],
    ['input that turns out wrong', NOTE('bad', '{% trigger.payload %}'), 'INPUT_INVALID'],
    ['a value that is missing', NOTE('bad', '{% trigger.missing %}'), 'MISSING_VALUE'],
    ['a value that is missing in a text', NOTE('bad', 'by {% trigger.missing %}'), 'MISSING_VALUE'],
    ['a wait that turns out wrong', '{ id: bad, tool: wait, with: { seconds: "{% 0 %}" } }', 'INPUT_INVALID'],
    ['a gate that turns out wrong', '{ id: bad, tool: approval, with: { quorum: "{% 0 %}" } }', 'INPUT_INVALID'],
  ])('shows %s, and which steps it prevents', async (_what, bad, code) => {
    const plan = await table.plan(steps(bad, NOTE('after', 'never')));
    expect(stepOf(plan, 'bad', 'failing').error.code).toBe(code);
    expect(stepOf(plan, 'after', 'call').reached).toBe(false);
    expect(plan.outcome).toBe('fails');
  });

  it('shows a connection that is not defined', async () => {
    const plan = await new PlanningTable().plan(steps(NOTE('note', 'seen')));
    expect(stepOf(plan, 'note', 'failing').error.code).toBe('CONNECTION_MISSING');
  });

  it('shows one write too many', async () => {
    await table.define({ caps: { maxWritesPerRun: 1 } });
    const plan = await table.plan(steps(NOTE('one', '1'), NOTE('two', '2')));
    expect(stepOf(plan, 'two', 'failing').error.code).toBe('CAP_EXCEEDED');
    expect(plan.writes).toEqual({ planned: 1, max: 1 });
  });

  it('is refused for an event without a title, like the run', async () => {
    const plan = table.plan(steps(NOTE('one', '1')), { fields: {} });
    await expect(plan).rejects.toMatchObject({ code: 'ENRICHMENT_FAILED' });
  });
});

describe('a target that cannot be read', () => {
  it('does not fail the plan, and the plan says why', async () => {
    table.outside.next('GET servicenow', { status: 503 });
    const plan = await table.plan(steps(UPDATE('assign', 'network'), LABEL('label', 'triage')));
    expect(stepOf(plan, 'assign', 'call')).toMatchObject({
      before: null,
      unread: expect.stringContaining('ServiceNow'),
    });
    expect(stepOf(plan, 'label', 'call').before).toEqual({ triage: false });
  });

  it('is one that asked to wait: the plan reads nothing more there', async () => {
    table.outside.next('GET servicenow', { status: 429, retryAfterSeconds: 30 });
    const plan = await table.plan(
      steps(UPDATE('assign', 'network'), LABEL('label', 'triage'), UPDATE('again', 'desk')),
    );
    expect(stepOf(plan, 'again', 'call').unread).toContain('the target asked to wait');
    expect(stepOf(plan, 'label', 'call').before).toEqual({ triage: false });
    expect(table.outside.callsOf('GET servicenow')).toHaveLength(1);
  });

  it('is one without a credential for plans', async () => {
    const plan = await table.plan(steps(UPDATE('assign', 'network')), {
      planner: { connections: new MemoryConnections({}) },
    });
    expect(stepOf(plan, 'assign', 'call')).toMatchObject({
      unread: expect.stringContaining('servicenow'),
      outcome: 'runs',
    });
  });

  it('is any target, once time runs short', async () => {
    const plan = await table.plan(steps(UPDATE('assign', 'network')), { planner: { hasTime: () => false } });
    expect(stepOf(plan, 'assign', 'call').unread).toBe('there was no time left to read it');
    expect(table.outside.calls).toEqual([]);
  });
});

describe('the hash of a plan', () => {
  const yaml = steps(UPDATE('assign', 'network'));

  it('does not change as long as its inputs do not change', async () => {
    const { planHash } = await table.plan(yaml);
    table.clock.advance(60_000);
    expect((await table.plan(yaml)).planHash).toBe(planHash);
  });

  const changes: Record<string, () => unknown> = {
    target: () => table.outside.incidents.set(SYS_ID, { fields: { category: 'x' }, workNotes: [] }),
    policy: () => Object.assign(table.policy, { decision: () => ({ verdict: 'allow', ...grounds, policyHash: 'x' }) }),
    caps: () => table.define({ caps: { maxWritesPerRun: 9 } }),
  };

  it.each(Object.keys(changes))('changes with the %s', async (what) => {
    const { planHash } = await table.plan(yaml);
    await changes[what]?.();
    expect((await table.plan(yaml)).planHash).not.toBe(planHash);
  });

  it('changes with the workflow', async () => {
    expect((await table.plan(`description: other\n${yaml}`)).planHash).not.toBe((await table.plan(yaml)).planHash);
  });
});
