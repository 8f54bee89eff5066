import { beforeEach, describe, expect, it } from 'vitest';
import { Workflow } from '../../../lambdas/workflow/workflow.ts';
import { MemoryDefinitions } from '../../fakes/memory/memory-definitions.ts';
import { askAbout } from './ask-definitions.ts';

const NAME = 'triage-issues';
const ACTION = { tool: 'github.labels.add', with: { owner: 'octo-org', repo: '{% trigger.repo %}', number: 7 } };
const BASE = {
  triggers: [{ source: 'github', event: 'issues.opened' }],
  instructions: 'Propose one label for {% trigger.title %}.',
  session: { actions: [ACTION], maxActions: 1, timeoutSeconds: 600 },
  configuration: { strategy: 'fixed', default: 'triage' },
};
const MADE = { name: 'automation.triage-issues', version: 1 };

let definitions: MemoryDefinitions;
beforeEach(async () => {
  definitions = new MemoryDefinitions();
  const workflow = Workflow.parse({ name: 'label', steps: [{ id: 'a', tool: 'transform' }] });
  await definitions.publishWorkflow('acme', workflow, 1);
  const session = { provider: 'agent' as const, command: '/bin/true', environment: 'dev' as const, capabilities: [] };
  await definitions.saveConfiguration('acme', { name: 'triage', routing: 'triages', session, revision: 1 });
});

const save = (body: object, person = 'olivia') =>
  askAbout(definitions, 'PUT /api/v1/automations/{name}', { id: NAME, body, as: { person, role: 'owner' } });
const made = (version: number) => definitions.workflow('acme', MADE.name, version);

describe('an automation with instructions', () => {
  it('runs a published workflow with one session, written by who saved it', async () => {
    const { status, body } = await save(BASE);
    expect([status, body.workflow, body.instructions]).toEqual([200, MADE, BASE.instructions]);
    const workflow = await made(1);
    expect(workflow).toMatchObject({ name: MADE.name, author: 'olivia', deadlineSeconds: 4_200 });
    expect(workflow?.source).toContain('name: automation.triage-issues');
    expect(workflow?.steps).toMatchObject([
      { id: 'session', tool: 'agent.session', with: { prompt: BASE.instructions, ...BASE.session } },
    ]);
    // Without a context, the session gets what is known of the event.
    expect(workflow?.steps[0]?.with.context).toContain('enrichment.title');
  });

  it('keeps its version and its author while they are unchanged; other instructions are a new version', async () => {
    await save(BASE);
    const { effectiveWithinSeconds: _, ...read } = (await save({ ...BASE, description: undefined }, 'oscar')).body;
    expect(read.workflow).toEqual(MADE);
    // As a client sends it back that has read it.
    expect((await save({ ...read, enabled: false }, 'oscar')).body).toMatchObject({ workflow: MADE, enabled: false });
    expect((await made(1))?.author).toBe('olivia');
    const changed = await save({ ...BASE, instructions: 'Propose two labels.' }, 'oscar');
    expect(changed.body.workflow).toEqual({ ...MADE, version: 2 });
    expect((await made(2))?.author).toBe('oscar');
    expect((await made(1))?.steps[0]?.with.prompt).toBe(BASE.instructions);
  });

  it('gives its run the rules that a workflow could have', async () => {
    const rules = { blastRadius: 'high', validation: { mode: 'per_step' }, onReject: 'pause' };
    await save({ ...BASE, session: { ...BASE.session, ...rules, approvals: { channel: 'C0TRIAGE' } } });
    expect(await made(1)).toMatchObject({ ...rules, approvals: { channel: 'C0TRIAGE' } });
  });

  it('is enabled again only while what it names exists', async () => {
    await save({ ...BASE, enabled: false });
    const [stored] = await definitions.configurations('acme');
    if (stored) await definitions.deleteConfiguration('acme', stored);
    const enabling = askAbout(definitions, 'POST /api/v1/automations/{name}/enable', { id: NAME });
    await expect(enabling).rejects.toMatchObject({ message: expect.stringContaining('no configuration triage') });
  });

  it('becomes one with a workflow, and the reverse', async () => {
    await save(BASE);
    const { triggers } = BASE;
    const workflow = { name: 'label', version: 1 };
    const { body } = await save({ triggers, workflow });
    expect([body.workflow, body.instructions]).toEqual([workflow, undefined]);
    expect((await save(BASE)).body.workflow).toEqual(MADE);
  });

  it.each([
    ['a workflow, too', { workflow: { name: 'label', version: 1 } }, 'a workflow or instructions, not both'],
    ['neither', { instructions: undefined, session: undefined }, 'name a workflow, or write instructions'],
    [
      'a session and a workflow',
      { instructions: undefined, workflow: { name: 'label', version: 1 } },
      'session: only with instructions',
    ],
    [
      'the workflow of instructions, but without them',
      { instructions: undefined, session: undefined, workflow: MADE },
      'is made from the instructions of an automation',
    ],
    ['no configuration', { configuration: undefined }, 'configuration: say where its sessions run'],
    ['inputs', { inputs: { a: 1 } }, 'inputs: only with a workflow'],
    ['empty instructions', { instructions: '' }, 'instructions'],
    ['an unknown tool', { session: { actions: [{ tool: 'github.labels.ad' }] } }, 'session.actions.0.tool'],
    [
      'an unknown field of a tool',
      { session: { actions: [{ ...ACTION, with: { repository: 'a' } }] } },
      'session.actions.0.with.repository: unknown field',
    ],
    ['an action that starts sessions', { session: { actions: [{ tool: 'agent.session' }] } }, 'cannot propose'],
    ['an unknown name in its instructions', { instructions: 'Look at {% steps.a.output %}.' }, 'instructions: '],
    ['a broken expression', { session: { context: { a: '{% trigger. %}' } } }, 'session.context.a: '],
    ['an unknown field of the session', { session: { action: [] } }, 'action'],
    ['a session that is too long', { session: { timeoutSeconds: 100_000 } }, 'session.timeoutSeconds'],
    [
      'a mode that needs a threshold',
      { session: { validation: { mode: 'critical_only' } } },
      'validation.autoApproveThreshold',
    ],
  ])('with %s is refused, and nothing is published', async (_, differing, said) => {
    await expect(save({ ...BASE, ...differing })).rejects.toMatchObject({ message: expect.stringContaining(said) });
    expect(await definitions.automations('acme')).toEqual([]);
    expect(await made(1)).toBeUndefined();
  });
});
