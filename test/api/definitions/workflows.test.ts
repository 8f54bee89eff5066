import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { handleDefinitions } from '../../../lambdas/api/definitions/definitions.ts';
import type { HttpEvent } from '../../../lambdas/entry/http.ts';
import { wireExpressions } from '../../../lambdas/workflow/expressions/expressions.wiring.ts';
import { CountingIds } from '../../fakes/counting-ids.ts';
import { FakeClock, STORY_BEGINS_AT } from '../../fakes/fake-clock.ts';
import { MemoryAgents } from '../../fakes/memory/memory-agents.ts';
import { MemoryDefinitions } from '../../fakes/memory/memory-definitions.ts';
import { MemorySchedules } from '../../fakes/memory/memory-schedules.ts';
import { ENDLESS } from '../../workflow/attack-expressions.ts';
import { HOSTILE_WORKFLOWS } from '../../workflow/hostile-workflows.ts';

const expressions = wireExpressions();
afterAll(() => expressions.stop());

let definitions: MemoryDefinitions;
beforeEach(() => {
  definitions = new MemoryDefinitions();
});

interface Asked {
  path?: Record<string, string>;
  query?: Record<string, string>;
  body?: string | object;
  role?: string;
  tenant?: string;
}

async function ask(routeKey: string, { path, query, body, role = 'owner', tenant = 'acme' }: Asked = {}) {
  const event = {
    routeKey,
    rawPath: routeKey.split(' ')[1],
    pathParameters: path,
    queryStringParameters: query,
    // API Gateway encodes a body that it does not know to be text.
    ...(body !== undefined && {
      body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)).toString('base64'),
      isBase64Encoded: true,
    }),
    requestContext: { authorizer: { lambda: { tenant, person: role === 'owner' ? 'olivia' : 'chloe', role } } },
  } as unknown as HttpEvent;
  const api = {
    definitions,
    agents: new MemoryAgents(),
    schedules: new MemorySchedules(),
    cursorSecret: async () => 'secret',
    clock: new FakeClock(),
    ids: new CountingIds(),
    expressions,
    peopleRules: { coolDownMs: 0, secondOwner: false },
  };
  const answer = await handleDefinitions(api, event);
  return { status: answer.statusCode, body: JSON.parse(answer.body ?? '') };
}

const PUBLISH = 'POST /api/v1/workflows';
const RESTART = (input: string, tool = 'agent.command') =>
  `name: restart\nsteps:\n  - {id: restart, tool: ${tool}, with: {command: /usr/bin/systemctl, ${input}}}\n`;
const VALIDATE = 'POST /api/v1/workflows/validate';
const LIST = 'GET /api/v1/workflows';
const VERSIONS = 'GET /api/v1/workflows/{name}';
const VERSION = 'GET /api/v1/workflows/{name}/versions/{version}';
const AUTOMATIONS = 'GET /api/v1/automations';
const AUTOMATION = 'GET /api/v1/automations/{name}';
const SAVE = 'PUT /api/v1/automations/{name}';

const file = (name: string, group = 'a') => `
# Comments are no part of it.
name: ${name}
steps:
  - { id: route, tool: transform, with: { group: ${group} } }
`;
const problem = (status: number, code: string, says = '') =>
  expect.objectContaining({ status, code, message: expect.stringContaining(says) });

describe('publishing a workflow', () => {
  it('returns 201 with the new version, and 200 for the same file again', async () => {
    expect(await ask(PUBLISH, { body: file('route') })).toEqual({
      status: 201,
      body: { name: 'route', version: 1, warnings: [] },
    });
    const reworded = file('route').replace('no part of it', 'still no part');
    expect(await ask(PUBLISH, { body: reworded })).toEqual({
      status: 200,
      body: { name: 'route', version: 1, warnings: [] },
    });
    expect(await ask(PUBLISH, { body: file('route', 'b') })).toMatchObject({ status: 201, body: { version: 2 } });
  });

  it('warns about an approval that nobody can give, and publishes', async () => {
    const asking = 'name: asking\nsteps:\n  - { id: ask, tool: approval, with: { groups: [nobody-is-here] } }\n';
    expect(await ask(PUBLISH, { body: asking })).toEqual({
      status: 201,
      body: { name: 'asking', version: 1, warnings: [expect.stringContaining('step ask: nobody can approve this')] },
    });
  });

  it('records the publisher, who is a maker of its writes', async () => {
    await ask(PUBLISH, { body: file('route') });
    expect(await definitions.workflow('acme', 'route', 1)).toMatchObject({ author: 'olivia' });
  });

  it('is refused with every mistake, each with its line, and nothing is published', async () => {
    const wrong = `${file('route')}  - { id: route, tool: nothing }\n`;
    await expect(ask(PUBLISH, { body: wrong })).rejects.toEqual(
      problem(422, 'WORKFLOW_INVALID', 'line 6: steps.1.tool'),
    );
    expect(await definitions.workflowVersions('acme', 'route', { limit: 1 })).toEqual([]);
  });

  it.each(['operator', 'approver', 'member', 'auditor'])('is not for a %s', async (role) => {
    await expect(ask(PUBLISH, { body: file('route'), role })).rejects.toEqual(problem(403, 'FORBIDDEN'));
    expect(await definitions.workflowVersions('acme', 'route', { limit: 1 })).toEqual([]);
  });

  it('accepts at most a mebibyte', async () => {
    await expect(ask(PUBLISH, { body: 'x'.repeat(1024 * 1024 + 1) })).rejects.toEqual(problem(413, 'TOO_LARGE'));
  });
});

describe('validating a workflow', () => {
  it('returns the mistakes, and publishes nothing', async () => {
    expect((await ask(VALIDATE, { body: file('route'), role: 'member' })).body).toEqual({ valid: true, problems: [] });
    expect((await ask(VALIDATE, { body: 'name: x\nsteps: []\n' })).body).toEqual({
      valid: false,
      problems: [{ line: 2, path: 'steps', message: expect.any(String) }],
    });
    expect(await definitions.workflowVersions('acme', 'route', { limit: 1 })).toEqual([]);
  });
});

describe('published workflows', () => {
  beforeEach(async () => {
    for (const name of ['c', 'a', 'b']) await ask(PUBLISH, { body: file(name) });
    for (const group of ['b', 'c']) await ask(PUBLISH, { body: file('a', group) });
  });

  it('are listed with their newest version, page by page, each once', async () => {
    const seen: unknown[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body } = await ask(LIST, { query: { limit: '2', ...(cursor && { cursor }) }, role: 'auditor' });
      seen.push(...body.workflows.map(({ name, version }: { name: string; version: number }) => [name, version]));
      cursor = body.nextCursor;
    }
    expect(seen).toEqual([
      ['a', 3],
      ['b', 1],
      ['c', 1],
    ]);
  });

  it('show their versions, newest first, page by page', async () => {
    const first = await ask(VERSIONS, { path: { name: 'a' }, query: { limit: '2' } });
    expect(first.body.versions).toEqual([
      { name: 'a', version: 3, description: null, author: 'olivia', publishedAt: STORY_BEGINS_AT, steps: 1 },
      expect.objectContaining({ version: 2 }),
    ]);
    const rest = await ask(VERSIONS, { path: { name: 'a' }, query: { cursor: first.body.nextCursor } });
    expect(rest.body.versions).toEqual([expect.objectContaining({ version: 1 })]);
    expect(rest.body.nextCursor).toBeNull();
  });

  it('show one version with its definition', async () => {
    const { body } = await ask(VERSION, { path: { name: 'a', version: '2' } });
    expect(body).toMatchObject({ name: 'a', version: 2, definition: { steps: [{ with: { group: 'b' } }] } });
    expect(body.definition).not.toHaveProperty('author');
  });

  it.each([
    [VERSIONS, { name: 'd' }, 'acme'],
    [VERSIONS, { name: 'a' }, 'globex'],
    [VERSION, { name: 'a', version: '4' }, 'acme'],
    [VERSION, { name: 'a', version: '0' }, 'acme'],
    [VERSION, { name: 'a', version: '1e0' }, 'acme'],
    [VERSION, { name: 'a', version: '1' }, 'globex'],
  ])('%s %j of %s is not found', async (route, path, tenant) => {
    await expect(ask(route, { path, tenant })).rejects.toEqual(problem(404, 'NOT_FOUND'));
  });

  it('are listed in the hint if none has the name', async () => {
    const unknown = ask(VERSIONS, { path: { name: 'd' } });
    await expect(unknown).rejects.toEqual(
      problem(404, 'NOT_FOUND', 'no workflow d; countersign workflow list shows all'),
    );
  });

  it('accept a cursor only for its list and its tenant', async () => {
    const { body } = await ask(LIST, { query: { limit: '1' } });
    const query = { cursor: body.nextCursor };
    await expect(ask(LIST, { query, tenant: 'globex' })).rejects.toEqual(problem(400, 'BAD_CURSOR'));
    await expect(ask(VERSIONS, { path: { name: 'a' }, query })).rejects.toEqual(problem(400, 'BAD_CURSOR'));
    await expect(ask(LIST, { query: { limit: '0' } })).rejects.toEqual(problem(400, 'BAD_REQUEST'));
  });
});

describe('automations', () => {
  const automation = {
    enabled: true,
    workspace: 'default',
    trigger: { source: 'github', event: 'issues.opened', filter: '{% trigger.number > 1 %}' },
    workflow: { name: 'route', version: 1 },
  };
  beforeEach(() => ask(PUBLISH, { body: file('route') }));

  it('remember who wrote their inputs, also after another person saves the same values', async () => {
    await ask(PUBLISH, { body: `inputs: { group: { type: string } }${file('route', 'c')}` });
    const body = { ...automation, workflow: { name: 'route', version: 2 }, inputs: { group: 'mine' } };
    const path = { name: 'triage' };
    const author = async () => (await definitions.automations('acme'))[0]?.author;
    await ask(SAVE, { path, body, role: 'admin' });
    await ask(SAVE, { path, body: { ...body, description: 'reworded' } });
    expect(await author()).toBe('chloe');
    await ask(SAVE, { path, body: { ...body, inputs: { group: 'other' } } });
    expect(await author()).toBe('olivia');
    await expect(ask(SAVE, { path, body: { ...body, author: 'stranger' } })).rejects.toThrow(
      problem(400, 'BAD_REQUEST'),
    );
  });

  it('are saved under the name in the path, with the time until they take effect', async () => {
    const derived = { triggers: [automation.trigger], notifications: [] };
    const { status, body } = await ask(SAVE, { path: { name: 'triage' }, body: automation });
    expect({ status, body }).toEqual({
      status: 200,
      body: { name: 'triage', ...automation, ...derived, effectiveWithinSeconds: 60 },
    });
    expect(await definitions.automations('acme')).toEqual([{ name: 'triage', ...automation }]);
    expect((await ask(AUTOMATION, { path: { name: 'triage' }, role: 'member' })).body).toEqual({
      name: 'triage',
      ...automation,
      ...derived,
    });
  });

  it.each<[string, object, string | undefined]>([
    ['without a required input', {}, 'inputs.label: is missing; expected text'],
    ['with an unknown input', { label: 'a', lable: 'b' }, 'inputs.lable: unknown field "lable"; did you mean "label"?'],
    ['with a constant that does not fit', { label: 7 }, 'inputs.label: must be text'],
    ['with an expression over steps', { label: '{% steps.a.output %}' }, 'inputs.label: unknown name "steps"'],
    ['with an expression that may fit', { label: '{% trigger.label %}' }, undefined],
  ])('of a workflow with inputs, %s', async (_what, inputs, says) => {
    const steps = 'steps: [{ id: a, tool: transform }]';
    await ask(PUBLISH, { body: `name: inputs\ninputs: { label: { type: string, required: true } }\n${steps}` });
    const body = { ...automation, workflow: { name: 'inputs', version: 1 }, inputs };
    const saved = ask(SAVE, { path: { name: 'triage' }, body });
    if (says === undefined) expect(await saved).toMatchObject({ status: 200, body: { inputs } });
    else await expect(saved).rejects.toMatchObject({ status: 422, message: expect.stringContaining(says) });
  });

  it.each<[string, object, number, string]>([
    ['a version that is not published', { workflow: { name: 'route', version: 2 } }, 422, 'the newest is 1'],
    ['a workflow that is not published', { workflow: { name: 'rout', version: 1 } }, 422, 'none is published'],
    ['a filter that is no JSONata', { trigger: { ...automation.trigger, filter: '{% ( %}' } }, 422, 'not JSONata'],
    [
      'a filter over steps',
      { trigger: { ...automation.trigger, filter: '{% steps.a.output %}' } },
      422,
      'start with trigger',
    ],
    ['an event GitHub does not send', { trigger: { source: 'github', event: 'issues.open' } }, 422, 'opened'],
    [
      'an event of another source',
      { trigger: { source: 'servicenow', event: 'issues.opened' } },
      422,
      'incident.insert',
    ],
    ['an unknown field', { when: 'always' }, 400, 'when'],
    ['another name', { name: 'other' }, 400, 'name other'],
    ['a workflow without a version', { workflow: 'triage' }, 400, 'workflow: write a version, like { name:'],
    ['a mistyped source', { trigger: { source: 'githb' } }, 400, 'trigger.source: "githb" is not valid; did you mean'],
    [
      'a mistyped field',
      { trigger: { soruce: 'manual' } },
      400,
      'trigger: unknown field `soruce`; did you mean `source`',
    ],
  ])('with %s are refused, and nothing is saved', async (_what, change, status, says) => {
    const saved = ask(SAVE, { path: { name: 'triage' }, body: { ...automation, ...change } });
    await expect(saved).rejects.toMatchObject({ status, message: expect.stringContaining(says) });
    expect(await definitions.automations('acme')).toEqual([]);
  });

  it('with a name that could be a key are refused', async () => {
    const saved = ask(SAVE, { path: { name: 'a#b' }, body: automation });
    await expect(saved).rejects.toEqual(problem(400, 'BAD_REQUEST'));
  });

  it('are changed by owners and admins, of their own tenant only', async () => {
    const saved = ask(SAVE, { path: { name: 'triage' }, body: automation, role: 'operator' });
    await expect(saved).rejects.toEqual(problem(403, 'FORBIDDEN'));
    await ask(SAVE, { path: { name: 'triage' }, body: automation, role: 'admin' });
    const foreign = ask(AUTOMATION, { path: { name: 'triage' }, tenant: 'globex' });
    await expect(foreign).rejects.toEqual(problem(404, 'NOT_FOUND', '; countersign automations list shows all'));
    expect((await ask(AUTOMATIONS, { tenant: 'globex' })).body).toEqual({ automations: [], nextCursor: null });
  });

  it('are listed page by page', async () => {
    for (const name of ['c', 'a', 'b']) await ask(SAVE, { path: { name }, body: automation });
    const first = await ask(AUTOMATIONS, { query: { limit: '2' } });
    const rest = await ask(AUTOMATIONS, { query: { cursor: first.body.nextCursor } });
    const names = [...first.body.automations, ...rest.body.automations].map(({ name }) => name);
    expect(names).toEqual(['a', 'b', 'c']);
    expect(rest.body.nextCursor).toBeNull();
  });
});

it('an unknown route is not found', async () => {
  await expect(ask('GET /api/v1/other')).rejects.toEqual(problem(404, 'NOT_FOUND'));
});

/** CPU time of this thread. On a busy machine it is up to three times as long. Without limits, most of these took minutes. */
const PROMPT_CPU_MS = 5_000;
const ANSWER_MAX_CHARACTERS = 40_000;

async function askPromptly(route: string, asked: Asked) {
  const began = process.threadCpuUsage();
  const answer = await ask(route, asked).catch((error: { status?: number; message: string }) => ({
    status: error.status,
    body: { detail: error.message },
  }));
  const { user } = process.threadCpuUsage(began);
  expect(user / 1000).toBeLessThan(PROMPT_CPU_MS);
  expect(JSON.stringify(answer.body).length).toBeLessThan(ANSWER_MAX_CHARACTERS);
  return answer;
}

describe('a body made to exhaust the reader', () => {
  it.each(HOSTILE_WORKFLOWS)(
    '(%s) gets a prompt response with what is wrong, from both routes',
    async (_what, body) => {
      const validated = await askPromptly(VALIDATE, { body, role: 'auditor' });
      expect(validated).toMatchObject({ status: 200, body: { valid: false } });
      expect(validated.body.problems.length).toBeLessThanOrEqual(25);
      expect((await askPromptly(PUBLISH, { body })).status).toBe(422);
    },
  );

  it('an expression that never ends is refused with its line before a run evaluates it', async () => {
    const text = ENDLESS.replaceAll('"', '\\"');
    const body = `name: x\nsteps:\n  - id: a\n    tool: transform\n    with: { x: "{% ${text} %}" }\n`;
    const validated = await ask(VALIDATE, { body, role: 'auditor' });
    const message = expect.stringContaining('it takes too long');
    expect(validated.body).toEqual({ valid: false, problems: [{ line: 5, path: 'steps.0.with.x', message }] });
    await expect(ask(PUBLISH, { body })).rejects.toEqual(problem(422, 'WORKFLOW_INVALID', 'line 5: steps.0.with.x'));
    expect(await definitions.newestWorkflows('acme', { limit: 10 })).toEqual([]);
  });

  it.each([
    ['one that nests too deep', `{"trigger":${'['.repeat(50_000)}${']'.repeat(50_000)}}`],
    [
      'one of unknown names',
      JSON.stringify(Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`u${at}`, 1]))),
    ],
    ['one long name', JSON.stringify({ ['x'.repeat(900_000)]: 1 })],
    [
      'a filter that never ends',
      JSON.stringify({
        trigger: { source: 'github', event: 'issues', filter: `{% ${ENDLESS} %}` },
        workflow: { name: 'route', version: 1 },
      }),
    ],
    [
      'a filter of dots',
      JSON.stringify({
        trigger: { source: 'github', event: 'issues', filter: `{% ${'a.'.repeat(300_000)}b %}` },
        workflow: { name: 'route', version: 1 },
      }),
    ],
  ])('an automation, %s, is refused promptly', async (_what, body) => {
    const { status } = await askPromptly(SAVE, { path: { name: 'x' }, body });
    expect([400, 422]).toContain(status);
    expect(await definitions.automations('acme')).toEqual([]);
  });
});

describe('publishing a command', () => {
  it('warns if no list allows it, or no agent could run it', async () => {
    const { status, body } = await ask(PUBLISH, { body: RESTART('args: [restart, web], environment: staging') });
    expect(status).toBe(201);
    expect(body.warnings).toEqual([
      expect.stringContaining(
        'step restart: it would be refused, profile staging-standard: the allow list does not have',
      ),
      expect.stringContaining('step restart: no agent is enrolled'),
    ]);
  });

  it('refuses a workflow that uses agent.rollback: only the rollback of a command does', async () => {
    await expect(ask(PUBLISH, { body: RESTART('args: [], environment: dev', 'agent.rollback') })).rejects.toMatchObject(
      {
        ...{ status: 422, code: 'WORKFLOW_INVALID' },
        message: 'line 3: steps.0.tool: unknown tool "agent.rollback"; tools: agent.command, agent.session',
      },
    );
  });

  it('refuses a prod command without a rollback, also if its other fields are expressions', async () => {
    const args = 'args: ["{% trigger.title %}"], segment: "{% trigger.subject %}"';
    await expect(ask(PUBLISH, { body: RESTART(`${args}, environment: prod`) })).rejects.toMatchObject({
      status: 422,
      message: expect.stringContaining('prod profiles need a rollback'),
    });
    const withRollback = `${args}, environment: prod, rollback: {command: /opt/undo, args: ["{% trigger.title %}"]}`;
    expect((await ask(PUBLISH, { body: RESTART(withRollback) })).status).toBe(201);
  });
});
