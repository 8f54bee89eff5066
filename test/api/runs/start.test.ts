import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { handleRuns } from '../../../lambdas/api/runs/runs.ts';
import { replayOf, rerunOf } from '../../../lambdas/api/start/repeat-run.ts';
import { handleStart } from '../../../lambdas/api/start/start.ts';
import type { HttpEvent } from '../../../lambdas/entry/http.ts';
import type { Automation } from '../../../lambdas/pipeline/definitions.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { outputPorts } from '../../fakes/memory/memory-output.ts';
import { TRIAGE } from '../../worker/workflows.ts';
import { ISSUE, SYS_ID, Workshop } from '../../worker/workshop.ts';

let shop: Workshop;
let requests = 0;
beforeEach(() => {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

interface Sent {
  params?: Record<string, string>;
  body?: unknown;
  headers?: Record<string, string>;
  as?: { tenant?: string; person?: string; role?: string };
}

const ids = { next: (prefix: string) => `${prefix}_f${(++requests).toString(16).padStart(7, '0')}` };

async function post(route: string, { params = {}, body = {}, headers = {}, as = {} }: Sent = {}) {
  const caller = { tenant: 'acme', person: 'olivia', role: 'operator', ...as };
  const event = {
    routeKey: `POST ${route}`,
    rawPath: route,
    pathParameters: params,
    headers,
    body: JSON.stringify(body),
    requestContext: { authorizer: { lambda: caller } },
  } as unknown as HttpEvent;
  const { runs, definitions, queue, clock, log } = shop;
  const starter = { runs, definitions, queue, clock, log, ids, expressions: shop.worker.expressions };
  const answer = await handleStart(starter, event);
  return { status: answer.statusCode, body: JSON.parse(answer.body ?? '') };
}
const START = '/api/v1/runs';
const RUN_AUTOMATION = '/api/v1/automations/{name}/run';
const RERUN = '/api/v1/runs/{id}/rerun';
const REPLAY = '/api/v1/runs/{id}/replay';

async function detail(runId: string) {
  const event = {
    routeKey: 'GET /api/v1/runs/{id}',
    pathParameters: { id: runId },
    requestContext: { authorizer: { lambda: { tenant: 'acme', person: 'olivia', role: 'auditor' } } },
  } as unknown as HttpEvent;
  const answer = await handleRuns({ ...shop, ...outputPorts(shop.clock), cursorSecret: async () => 'secret' }, event);
  return JSON.parse(answer.body ?? '');
}

const message = (runId: string): StepMessage => ({ tenant: 'acme', runId });
const refusal = (status: number, code: string, text = '') =>
  expect.objectContaining({ status, code, message: expect.stringContaining(text) });

const LABEL = `
name: label
inputs: { label: { type: string, required: true } }
steps:
  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: ["{% inputs.label %}"] } }
`;

const automation = (name: string, differing: Partial<Automation> = {}): Automation => ({
  name,
  enabled: true,
  workspace: 'default',
  trigger: { source: 'manual' },
  workflow: { name: 'label', version: 1 },
  ...differing,
});

/** Publishes the workflow `label`. */
const published = () => shop.begin(LABEL, { inputs: { label: 'unused' } });
async function publishAgain(name: string): Promise<void> {
  const workflow = await shop.definitions.workflow('acme', name, 1);
  if (!workflow) throw new Error('not published');
  await shop.definitions.publishWorkflow('acme', { ...workflow, description: 'new' }, 2);
}
const runsOf = () => [...shop.runs.inside.runs()].length;

describe('POST /runs', () => {
  it('starts a run of the newest version with the given inputs, and its caller is a maker', async () => {
    await published();
    const body = { workflow: { name: 'label' }, inputs: { label: 'triage' }, title: 'Label it', subject: 'issue 7' };
    const started = await post(START, { body });
    expect(started.status).toBe(201);
    expect(started.body).toMatchObject({ workflow: { name: 'label', version: 1 }, request: { actor: 'olivia' } });
    const { run, steps } = await shop.finish(message(started.body.runId));
    expect(run).toMatchObject({ status: 'succeeded', subject: 'issue 7', enrichment: { title: 'Label it' } });
    expect(run.trigger.source).toBe('api');
    expect(shop.outside.issueLabels.get(ISSUE)).toContain('triage');
    const [step] = steps;
    expect(step?.governed?.request.action.makers).toContain('olivia');
    expect(step?.governed?.request.source).toBe('api');
  });

  it('starts nothing again for the same key: the same answer, also after the automation is gone', async () => {
    await published();
    await shop.definitions.saveAutomation('acme', automation('label'));
    const sent = {
      body: { workflow: { name: 'label' }, inputs: { label: 'a' } },
      headers: { 'idempotency-key': 'k1' },
    };
    const first = await post(START, sent);
    const count = runsOf();
    await shop.definitions.saveAutomation('acme', automation('label', { enabled: false }));
    expect(await post(START, sent)).toEqual({ status: 200, body: first.body });
    expect(await post(START, { ...sent, headers: { 'x-request-id': 'k1' } })).toEqual({
      status: 200,
      body: first.body,
    });
    expect(runsOf()).toBe(count);
  });

  it('starts one run when the same request arrives many times at once', async () => {
    await published();
    const before = runsOf();
    const sent = { body: { workflow: { name: 'label' }, inputs: { label: 'a' } }, headers: { 'idempotency-key': 'k' } };
    const all = await Promise.all(Array.from({ length: 8 }, () => post(START, sent)));
    expect(all.map(({ status }) => status).sort()).toEqual([...Array(7).fill(200), 201]);
    expect(new Set(all.map(({ body }) => body.runId)).size).toBe(1);
    expect(runsOf()).toBe(before + 1);
  });

  it('refuses the same key with another body; a key belongs to one client', async () => {
    await published();
    const headers = { 'x-idempotency-key': 'k' };
    const body = { workflow: { name: 'label' }, inputs: { label: 'a' } };
    const first = await post(START, { headers, body });
    const other = post(START, { headers, body: { ...body, inputs: { label: 'b' } } });
    await expect(other).rejects.toThrow(refusal(422, 'IDEMPOTENCY_CONFLICT', first.body.runId));
    const otherClient = await post(START, { headers, body, as: { person: 'pavel' } });
    expect(otherClient.status).toBe(201);
    expect(otherClient.body.runId).not.toBe(first.body.runId);
    shop.clock.advance(25 * 60 * 60 * 1000);
    expect((await post(START, { headers, body })).status).toBe(201);
  });

  it('starts a run for each request without a key', async () => {
    await published();
    const body = { workflow: { name: 'label' }, inputs: { label: 'a' } };
    const [first, second] = [await post(START, { body }), await post(START, { body })];
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(first.body.runId).not.toBe(second.body.runId);
  });

  it.each([
    ['an unknown workflow', { workflow: { name: 'lable' } }, refusal(404, 'NOT_FOUND', 'no workflow lable')],
    ['an unknown version', { workflow: { name: 'label', version: 7 } }, refusal(404, 'NOT_FOUND', 'the newest is 1')],
    ['a missing input', { workflow: { name: 'label' } }, refusal(400, 'INPUT_INVALID', 'inputs.label')],
    [
      'an unknown input',
      { workflow: { name: 'label' }, inputs: { label: 'a', lable: 'b' } },
      refusal(400, 'INPUT_INVALID', 'did you mean "label"'),
    ],
    [
      'an automation of another workflow',
      { workflow: { name: 'label' }, automation: 'other', inputs: { label: 'a' } },
      refusal(409, 'CONFLICT', 'runs the workflow another'),
    ],
    [
      'an unknown field',
      { workflow: { name: 'label' }, input: {} },
      refusal(400, 'BAD_REQUEST', 'did you mean `inputs`'),
    ],
  ])('refuses %s and starts nothing', async (_case, body, error) => {
    await published();
    await shop.definitions.saveAutomation('acme', automation('other', { workflow: { name: 'another', version: 1 } }));
    const before = runsOf();
    await expect(post(START, { body, headers: { 'idempotency-key': 'k' } })).rejects.toThrow(error);
    await expect(
      post(START, { body: { workflow: { name: 'label' } }, headers: { 'idempotency-key': 'a b' } }),
    ).rejects.toThrow(refusal(400, 'BAD_REQUEST', 'visible ASCII'));
    expect(runsOf()).toBe(before);
  });
});

describe('an older version of a workflow', () => {
  const asked = { workflow: { name: 'label', version: 1 }, inputs: { label: 'a' } };
  const start = () => post(START, { body: asked });
  beforeEach(async () => {
    await published();
    await publishAgain('label');
  });

  it('is started if an enabled automation runs it', async () => {
    await shop.definitions.saveAutomation('acme', automation('pinned'));
    expect((await start()).body.workflow).toEqual({ name: 'label', version: 1 });
  });

  it.each([
    ['no automation', undefined, 'the newest is 2. Start one of these, or publish the old content again'],
    ['a disabled automation', automation('pinned', { enabled: false }), 'the newest is 2. Start'],
    [
      'an automation of another version only',
      automation('newer', { workflow: { name: 'label', version: 2 } }),
      'the newest is 2, newer runs version 2. Start',
    ],
  ])('is refused with %s', async (_what, stored, text) => {
    if (stored) await shop.definitions.saveAutomation('acme', stored);
    const before = runsOf();
    await expect(start()).rejects.toThrow(refusal(409, 'CONFLICT', text));
    expect(runsOf()).toBe(before);
  });
});

describe('6.12 POST /automations/{name}/run', () => {
  it('starts a run of the version of the automation, in its name', async () => {
    await published();
    await shop.definitions.saveAutomation('acme', automation('label-now', { workspace: 'ops' }));
    const sent = { params: { name: 'label-now' }, body: { inputs: { label: 'triage' } } };
    const { status, body } = await post(RUN_AUTOMATION, sent);
    expect({ status, ...body }).toMatchObject({ status: 201, automation: 'label-now', trigger: { source: 'manual' } });
    const { run } = await shop.finish(message(body.runId));
    expect(run).toMatchObject({ status: 'succeeded', workspace: 'ops', enrichment: { actor: 'olivia' } });
  });

  it('makes a run like any other: one transaction with its idempotency record and a trigger event of its own', async () => {
    await published();
    await shop.definitions.saveAutomation('acme', automation('label-now'));
    const { body } = await post(RUN_AUTOMATION, {
      params: { name: 'label-now' },
      body: { inputs: { label: 'triage' } },
      headers: { 'idempotency-key': 'k1' },
    });
    const manual = await shop.now(message(body.runId));
    const byEvent = await shop.now(await shop.begin(LABEL.replace('name: label', 'name: other')));
    const lived = (run: { createdAt: string; deadlineAt: string }) =>
      Date.parse(run.deadlineAt) - Date.parse(run.createdAt);
    expect(lived(manual.run)).toBe(lived(byEvent.run));
    expect(manual.run).toMatchObject({
      status: 'queued',
      seq: 1,
      trigger: { source: 'manual', event: 'run.requested' },
    });
    expect(manual.run).toHaveProperty('dueAt');
    expect(manual.commits.map(({ events }) => events.map(({ type }) => type))).toEqual([
      ['run.accepted', 'run.requested'],
    ]);
    expect((await shop.runs.load('acme', body.runId))?.trigger).toMatchObject({
      source: 'manual',
      payload: { inputs: { label: 'triage' } },
    });
    const record = await shop.runs.idempotencyRecord('acme', manual.run.trigger.key);
    expect(record?.runIds).toEqual([body.runId]);
  });

  it('needs no trigger for it, and makes none: the automation and its triggers stay as they are', async () => {
    await published();
    const stored = automation('label-now', { trigger: { source: 'github', event: 'issues.opened' } });
    await shop.definitions.saveAutomation('acme', stored);
    for (let times = 0; times < 2; times += 1) {
      await post(RUN_AUTOMATION, { params: { name: 'label-now' }, body: { inputs: { label: 'triage' } } });
    }
    expect(await shop.definitions.automations('acme')).toEqual([stored]);
  });

  it('the author of the inputs of an automation is a maker, in reruns too', async () => {
    await published();
    await shop.definitions.saveAutomation(
      'acme',
      automation('fixed', { inputs: { label: 'evil' }, author: 'mallory' }),
    );
    const first = await post(RUN_AUTOMATION, { params: { name: 'fixed' } });
    const { steps } = await shop.finish(message(first.body.runId));
    expect(steps[0]?.governed?.request.action.makers).toEqual(['olivia', 'mallory']);
    const again = await post(RERUN, { params: { id: first.body.runId } });
    expect((await shop.now(message(again.body.runId))).run.makers).toEqual(['mallory', 'olivia']);
  });

  it.each([
    ['label-nwo', refusal(404, 'NOT_FOUND', 'did you mean "label-now"')],
    ['off', refusal(409, 'CONFLICT', 'is disabled')],
  ])('refuses %s', async (name, error) => {
    await published();
    await shop.definitions.saveAutomation('acme', automation('label-now'));
    await shop.definitions.saveAutomation('acme', automation('off', { enabled: false }));
    await expect(post(RUN_AUTOMATION, { params: { name } })).rejects.toThrow(error);
  });
});

/** A finished run of the workflow `triage`, and the number of writes that reached the targets. */
async function finished() {
  const done = await shop.finish(await shop.begin(TRIAGE, { automation: 'triage' }));
  expect(done.run.status).toBe('succeeded');
  return { runId: done.run.runId, writes: writes() };
}
const writes = () => shop.outside.calls.filter(({ name }) => !name.includes('GET')).length;

describe('rerun', () => {
  it('starts a new run of the same trigger, linked both ways; the caller is a maker', async () => {
    const original = await finished();
    const { status, body } = await post(RERUN, { params: { id: original.runId } });
    expect(status).toBe(201);
    expect(body).toMatchObject({ workflow: { name: 'triage', version: 1 }, request: { rerunOf: original.runId } });
    const again = await shop.finish(message(body.runId));
    expect(again.run).toMatchObject({ status: 'succeeded', trigger: { source: 'github' }, makers: ['olivia'] });
    // The note names the run, so it is another write.
    expect(again.steps[2]?.governed?.request.action.makers).toContain('olivia');
    expect(await detail(body.runId)).toMatchObject({ request: { actor: 'olivia', rerunOf: original.runId } });
    const reruns = [{ runId: body.runId, kind: 'rerun', requestedBy: 'olivia', createdAt: body.createdAt }];
    expect(await detail(original.runId)).toMatchObject({ reruns });
  });

  it('keeps the makers of the original: a rerun of a rerun does not forget who wrote its values', async () => {
    const original = await finished();
    const first = await post(RERUN, { params: { id: original.runId }, as: { person: 'mallory' } });
    await shop.finish(message(first.body.runId));
    const { body } = await post(RERUN, { params: { id: first.body.runId } });
    const { run } = await shop.finish(message(body.runId));
    expect(run.makers).toEqual(['mallory', 'olivia']);
  });

  it('uses the version of the original, if it is still used, or the newest on request', async () => {
    const original = await finished();
    await publishAgain('triage');
    const old = post(RERUN, { params: { id: original.runId } });
    await expect(old).rejects.toThrow(refusal(409, 'CONFLICT', 'version 1 of workflow triage is no longer used'));
    const versions = [];
    await shop.definitions.saveAutomation('acme', automation('triage', { workflow: { name: 'triage', version: 1 } }));
    for (const body of [{}, { workflowVersion: 'newest' }]) {
      versions.push((await post(RERUN, { params: { id: original.runId }, body })).body.workflow.version);
    }
    expect(versions).toEqual([1, 2]);
  });

  it.each([
    ['is disabled', { enabled: false }, 'the automation triage of this run is disabled; enable it first'],
    ['runs another workflow', { workflow: { name: 'label', version: 1 } }, 'now runs the workflow label'],
  ])('and a replay start nothing if the automation %s', async (_what, differing, text) => {
    const original = await finished();
    const stored = automation('triage', { workflow: { name: 'triage', version: 1 }, ...differing });
    await shop.definitions.saveAutomation('acme', stored);
    const before = runsOf();
    for (const route of [RERUN, REPLAY]) {
      await expect(post(route, { params: { id: original.runId } })).rejects.toThrow(refusal(409, 'CONFLICT', text));
    }
    expect(runsOf()).toBe(before);
  });

  it('and a replay start nothing if the automation no longer exists', async () => {
    const { runId } = (await shop.finish(await shop.begin(TRIAGE, { automation: 'gone' }))).run;
    for (const route of [RERUN, REPLAY]) {
      const refused = refusal(409, 'CONFLICT', 'gone of this run no longer exists; start its workflow instead');
      await expect(post(route, { params: { id: runId } })).rejects.toThrow(refused);
    }
  });

  it('refuses a rollback run: it has the trigger of the run that it undoes, but not its makers', async () => {
    const { runId } = await finished();
    const loaded = await shop.runs.load('acme', runId);
    if (!loaded) throw new Error('not stored');
    const rollbackOf = { runId: 'run_first', bundleHash: '', steps: [] };
    const ended = { status: 'failed_terminal' as const, completedAt: loaded.run.updatedAt, durationMs: 1 };
    const run = { ...loaded.run, ...ended, rollbackOf };
    const runs = { load: async () => ({ ...loaded, run }), receipts: async () => [] };
    const ports = { runs, definitions: shop.definitions };
    const caller = { tenant: 'acme', person: 'olivia', role: 'operator' as const };
    const refused = refusal(
      409,
      'RUN_INVALID_TRANSITION',
      `this run rolls back run_first and cannot be repeated; correct by hand what it did not undo, then close it: countersign runs resolve ${runId} `,
    );
    await expect(rerunOf(ports, caller, runId, { workflowVersion: 'same' })).rejects.toThrow(refused);
    await expect(replayOf(ports, caller, runId, {})).rejects.toThrow(refused);
  });

  it.each([RERUN, REPLAY])('%s refuses a run that has not ended, and one of another tenant', async (route) => {
    const { runId } = await shop.begin(TRIAGE);
    await expect(post(route, { params: { id: runId } })).rejects.toThrow(
      refusal(409, 'RUN_INVALID_TRANSITION', 'queued'),
    );
    const elsewhere = post(route, { params: { id: runId }, as: { tenant: 'globex' } });
    await expect(elsewhere).rejects.toThrow(refusal(404, 'NOT_FOUND'));
  });
});

describe('replay', () => {
  it('repeats a finished run from any step without any write, however long ago it ran', async () => {
    const original = await finished();
    shop.clock.advance(40 * 24 * 60 * 60 * 1000);
    // Somebody changed the target since: a rerun would write, a replay must not.
    shop.outside.issueLabels.set(ISSUE, []);
    let id = original.runId;
    for (const step of [undefined, 'assign', 'note', 'label', 'route']) {
      const { body } = await post(REPLAY, { params: { id }, body: step === undefined ? {} : { step } });
      const again = await shop.finish(message(body.runId));
      expect(again.run.status).toBe('succeeded');
      // The next one replays the replay.
      id = body.runId;
    }
    expect(writes()).toBe(original.writes);
  });

  it('takes the outputs of earlier steps from the original, and says so', async () => {
    const original = await finished();
    const { body } = await post(REPLAY, { params: { id: original.runId }, body: { step: 'label' } });
    const { steps, commits } = await shop.finish(message(body.runId));
    const before = (await shop.now(message(original.runId))).steps;
    expect(steps.slice(0, 3)).toEqual(
      before
        .slice(0, 3)
        .map(({ id, ...step }) =>
          expect.objectContaining({ id, output: 'output' in step ? step.output : 0, copiedFrom: original.runId }),
        ),
    );
    expect(steps[3]).not.toHaveProperty('copiedFrom');
    expect(commits[0]?.events[1]).toEqual({
      type: 'run.requested',
      actor: 'olivia',
      replay: { of: original.runId, from: 'label' },
    });
  });

  it('has the makers of the writes whose outputs it takes over, editors too', async () => {
    const { runId } = await finished();
    const loaded = await shop.runs.load('acme', runId);
    if (!loaded) throw new Error('not stored');
    // Somebody edited the note, the third of four steps.
    const steps = loaded.steps.map((step) => {
      const action = step.governed && { ...step.governed.request.action, makers: ['mia'] };
      const request = action && { ...step.governed?.request, action };
      return step.index === 2 ? { ...step, governed: { ...step.governed, request } } : step;
    });
    const runs = { load: async () => ({ ...loaded, steps }) as typeof loaded, receipts: async () => [] };
    const caller = { tenant: 'acme', person: 'olivia', role: 'operator' as const };
    const makers = async (step: string) =>
      (await replayOf({ runs, definitions: shop.definitions }, caller, runId, { step })).makers;
    expect(await makers('label')).toContain('mia');
    // Here the note itself is made again.
    expect(await makers('note')).not.toContain('mia');
  });

  it('continues an original of an older version in that version', async () => {
    const original = await finished();
    await publishAgain('triage');
    const { body } = await post(REPLAY, { params: { id: original.runId }, body: { step: 'label' } });
    expect(body.workflow.version).toBe(1);
  });

  it('makes the writes that the original did not make, once', async () => {
    shop.outside.issueLabels.delete(ISSUE);
    const failed = await shop.finish(await shop.begin(TRIAGE, { automation: 'triage' }));
    expect(failed.run.status).toBe('failed_terminal');
    shop.outside.issueLabels.set(ISSUE, ['bug']);
    const before = writes();
    const { body } = await post(REPLAY, { params: { id: failed.run.runId } });
    expect(body.request.replay.from).toBe('label');
    expect((await shop.finish(message(body.runId))).run.status).toBe('succeeded');
    expect(writes()).toBe(before + 1);
    expect(shop.outside.issueLabels.get(ISSUE)).toContain('triage');
    expect(shop.outside.incidents.get(SYS_ID)?.workNotes).toHaveLength(1);
  });

  it('makes no write of `dedupeScope: run` twice', async () => {
    const yaml = `
name: once
steps:
  - { id: note, tool: servicenow.incident.add_work_note, dedupeScope: run, with: { sysId: "${SYS_ID}", note: "seen" } }
`;
    const { runId } = (await shop.finish(await shop.begin(yaml, { automation: 'once' }))).run;
    for (const id of [runId, runId]) {
      const { body } = await post(REPLAY, { params: { id } });
      expect((await shop.finish(message(body.runId))).run.status).toBe('succeeded');
    }
    expect(shop.outside.incidents.get(SYS_ID)?.workNotes).toHaveLength(1);
  });

  it('refuses an unknown step with the nearest name', async () => {
    const original = await finished();
    const wrong = post(REPLAY, { params: { id: original.runId }, body: { step: 'lable' } });
    await expect(wrong).rejects.toThrow(refusal(400, 'BAD_REQUEST', 'did you mean "label"'));
  });
});
