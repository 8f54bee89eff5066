import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { handlePlan } from '../../../lambdas/api/definitions/plan.ts';
import type { HttpEvent } from '../../../lambdas/entry/http.ts';
import { MemoryPlanStore } from '../../fakes/memory/memory-plan-store.ts';
import { ISSUE, SYS_ID, Workshop } from '../../worker/workshop.ts';

const FILE = `
name: triage
steps:
  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { category: "{% trigger.title %}" } } }
  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [triage] } }
`;
const PAYLOAD = { action: 'opened', issue: { number: 7, title: 'db' }, repository: { full_name: 'octo-org/payments' } };

let shop: Workshop;
let plans: MemoryPlanStore;
let ids = 0;
beforeEach(async () => {
  shop = new Workshop();
  plans = new MemoryPlanStore();
  vi.stubGlobal('fetch', shop.outside.fetch);
  await shop.begin(FILE);
  for (const [name, { baseUrl, instance }] of Object.entries(shop.outside.access())) {
    await shop.definitions.saveConnection('acme', { name, baseUrl, instance });
  }
});
afterEach(() => vi.unstubAllGlobals());

async function post(
  route: string,
  body: unknown = {},
  params: Record<string, string> = {},
  { tenant = 'acme', person = 'oscar' } = {},
) {
  const event = {
    routeKey: `POST ${route}`,
    pathParameters: params,
    headers: {},
    body: JSON.stringify(body),
    requestContext: { authorizer: { lambda: { tenant, person, role: 'operator' } } },
  } as unknown as HttpEvent;
  const ports = {
    ...shop.worker,
    definitions: shop.definitions,
    runs: shop.runs,
    ids: { next: (prefix: string) => `${prefix}_a${(++ids).toString(16).padStart(7, '0')}` },
    region: 'eu-west-1',
    hasTime: () => true,
    plans,
  };
  const answer = await handlePlan(ports, event);
  return { status: answer.statusCode, body: JSON.parse(answer.body ?? '') };
}
const simulate = async () => {
  const wanted = { workflow: { name: 'triage' }, source: 'github', payload: PAYLOAD, save: true };
  return (await post('/api/v1/workflows/simulate', wanted)).body.planHash as string;
};
const apply = (hash: string, as: { tenant?: string; person?: string } = {}) =>
  post('/api/v1/plans/{hash}/apply', {}, { hash }, as);
const writes = () => shop.outside.calls.filter(({ name }) => !name.startsWith('GET'));

it('starts the run of a saved plan once; it writes what the plan showed, and its caller is a maker', async () => {
  const hash = await simulate();
  expect(writes()).toEqual([]);
  const first = await apply(hash);
  expect(first).toMatchObject({ status: 201, body: { request: { actor: 'oscar', planHash: hash } } });
  const { run, steps } = await shop.finish({ tenant: 'acme', runId: first.body.runId });
  expect(run).toMatchObject({ status: 'succeeded', makers: ['oscar'] });
  expect(steps[0]?.governed?.request.action.makers).toContain('oscar');
  expect(shop.outside.issueLabels.get(ISSUE)).toContain('triage');
  expect(writes()).toHaveLength(2);
  expect(await apply(hash)).toEqual({ status: 200, body: first.body });
});

it('the person who saved a plan wrote its event: they are a maker, also if somebody else applies it', async () => {
  const { body } = await apply(await simulate(), { person: 'paula' });
  const { run, steps } = await shop.finish({ tenant: 'acme', runId: body.runId });
  expect(run.makers).toEqual(['oscar', 'paula']);
  expect(steps[0]?.governed?.request.action.makers).toEqual(expect.arrayContaining(['oscar', 'paula']));
});

it('policy does not trust the facts of an event that a person wrote', async () => {
  const { runId } = (await apply(await simulate())).body;
  const { steps } = await shop.finish({ tenant: 'acme', runId });
  expect(steps[0]?.governed?.request).toMatchObject({ source: 'api', trigger: { event: 'run.requested' } });
  const loaded = await shop.runs.load('acme', runId);
  expect(loaded?.trigger).toMatchObject({ source: 'github', simulated: true });
});

it('refuses a plan whose target changed before it was applied, and starts nothing', async () => {
  const hash = await simulate();
  shop.outside.issueLabels.set(ISSUE, ['bug', 'triage']);
  const runs = [...shop.runs.inside.runs()].length;
  await expect(apply(hash)).rejects.toMatchObject({ status: 409, code: 'PLAN_DRIFTED' });
  expect([...shop.runs.inside.runs()]).toHaveLength(runs);
  expect(writes()).toEqual([]);
});

it('refuses the write if the target changes after the run has started, before anything is sent', async () => {
  const { runId } = (await apply(await simulate())).body;
  shop.outside.incidents.set(SYS_ID, {
    fields: { category: 'others', state: '1', number: 'INC1' },
    workNotes: [],
  });
  const { run } = await shop.finish({ tenant: 'acme', runId });
  expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'PLAN_DRIFTED' } });
  expect(writes()).toEqual([]);
});

it('refuses a write that the plan did not show', async () => {
  const hash = await simulate();
  const saved = await plans.savedPlan('acme', hash);
  if (!saved) throw new Error('not saved');
  for (const [change, text] of [
    [{ fields: { category: 'another hash' } }, 'another value for category'],
    [{ target: 'servicenow:acme:incident:other' }, 'showed a write to servicenow:acme:incident:other'],
    [{ step: 'unknown' }, 'no write of this step'],
  ] as const) {
    const [write, ...rest] = saved.plan.writes;
    const plannedAt = `${saved.plannedAt}${text}`;
    const plan = { ...saved.plan, writes: [{ ...write, ...change } as typeof write & object, ...rest] };
    await plans.savePlan('acme', { ...saved, plannedAt, plan });
    const { runId } = (await apply(hash)).body;
    const { run } = await shop.finish({ tenant: 'acme', runId });
    expect(run).toMatchObject({ error: { code: 'PLAN_DRIFTED', message: expect.stringContaining(text) } });
  }
  expect(writes()).toEqual([]);
});

it('refuses a plan that expired, is not saved, or is of another tenant', async () => {
  const hash = await simulate();
  await expect(apply(hash, { tenant: 'globex' })).rejects.toMatchObject({ status: 404 });
  await expect(apply('0'.repeat(64))).rejects.toMatchObject({ status: 404 });
  shop.clock.advance(25 * 60 * 60 * 1000);
  await expect(apply(hash)).rejects.toMatchObject({ status: 404, message: expect.stringContaining('expired') });
});
