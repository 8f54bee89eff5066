import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { processRun } from '../../../lambdas/worker/process-run.ts';
import { Workshop } from '../workshop.ts';

let shop: Workshop;
beforeEach(() => {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const LABEL =
  '{ id: label, tool: github.labels.add, dedupeScope: run, with: { owner: octo-org, repo: payments, number: 7, labels: [x] } }';
const POST = '{ id: post, tool: slack.message.post, dedupeScope: run, with: { channel: "#incidents", text: hello } }';
const workflow = (...steps: string[]) => `name: both\nsteps:\n${steps.map((step) => `  - ${step}\n`).join('')}`;
const session = { provider: 'agent' as const, command: '/bin/true', environment: 'dev' as const, capabilities: [] };

describe('connections of an automation', () => {
  it('are the only ones that a write of its runs uses: other writes are not made', async () => {
    const message = await shop.begin(workflow(LABEL, POST), { terms: { connections: ['github'] } });
    const { run, steps } = await shop.finish(message);
    expect(run.status).toBe('failed_terminal');
    expect(steps.find(({ id }) => id === 'label')?.status).toBe('succeeded');
    expect(steps.find(({ id }) => id === 'post')).toMatchObject({ error: { code: 'CONNECTION_NOT_ALLOWED' } });
    expect(shop.outside.channels.get('#incidents')).toEqual([]);
  });

  it('are all, if the automation does not name any; an empty list permits none', async () => {
    expect((await shop.finish(await shop.begin(workflow(POST)))).run.status).toBe('succeeded');
    const label = workflow(LABEL).replace('both', 'label');
    const none = await shop.finish(await shop.begin(label, { terms: { connections: [] } }));
    expect(none.run.status).toBe('failed_terminal');
    expect(shop.outside.issueLabels.get('octo-org/payments#7')).toEqual(['bug']);
  });
});

describe('caps of an automation', () => {
  const begun = async (automation: string) => {
    const message = await shop.begin(workflow(LABEL), { automation, terms: { caps: { maxConcurrency: 1 } } });
    await processRun({ ...shop.worker, timeLeftMs: () => 0 }, message);
    shop.queue.receive();
    return message;
  };

  it('limit how many of its runs are running; other automations of the same workflow are not limited', async () => {
    const first = await begun('a');
    const second = await begun('a');
    const other = await begun('b');
    const statusOf = async (message: typeof first) => (await shop.now(message)).run.status;
    expect([await statusOf(first), await statusOf(second), await statusOf(other)]).toEqual([
      'running',
      'queued',
      'running',
    ]);
    for (const message of [first, second, other]) expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect([...shop.runs.inside.caps.counters()].filter(({ running }) => running !== 0)).toEqual([]);
  });

  it('limit the writes of a run, even if the workflow permits more', async () => {
    const yaml = `name: both\ncaps: { maxWritesPerRun: 5 }\nsteps:\n  - ${LABEL}\n  - ${POST}\n`;
    const { run } = await shop.finish(await shop.begin(yaml, { terms: { caps: { maxWritesPerRun: 1 } } }));
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'CAP_EXCEEDED' } });
    expect(shop.outside.channels.get('#incidents')).toEqual([]);
  });

  it('limit how many of its runs start in a minute', async () => {
    const terms = { caps: { maxRunsPerMinute: 1 } };
    const [first, second] = [
      await shop.begin(workflow(LABEL), { terms }),
      await shop.begin(workflow(LABEL), { terms }),
    ];
    await shop.work(first);
    await shop.work(second);
    expect((await shop.now(second)).run.status).toBe('queued');
    expect((await shop.finish(second)).run.status).toBe('succeeded');
  });
});

describe('6.4 target_resolved', () => {
  const fixed = { configuration: { strategy: 'fixed' as const, default: 'triage' } };
  const eventsOf = async (message: { tenant: string; runId: string }) =>
    (await shop.now(message)).commits.flatMap(({ events }) => events).map(({ type }) => type);

  it('is recorded before any step starts, and the run names the configuration', async () => {
    await shop.definitions.saveConfiguration('acme', { name: 'triage', session, revision: 1 });
    const message = await shop.begin(workflow(LABEL), { terms: fixed });
    expect((await shop.finish(message)).run).toMatchObject({ status: 'succeeded', configuration: 'triage' });
    const events = await eventsOf(message);
    expect(events.indexOf('run.target_resolved')).toBeGreaterThan(0);
    expect(events.indexOf('run.target_resolved')).toBeLessThan(events.indexOf('step.claimed'));
  });

  it('is recorded also if there is none; then the run fails with stage and reason, and nothing is written', async () => {
    const message = await shop.begin(workflow(LABEL), { terms: fixed });
    const { run, steps } = await shop.finish(message);
    expect(run).toMatchObject({
      status: 'failed_terminal',
      error: { code: 'CONFIGURATION_UNRESOLVED', message: 'configuration: there is no configuration triage' },
    });
    expect(steps).toEqual([]);
    expect(await eventsOf(message)).toContain('run.target_resolved');
    expect(shop.outside.issueLabels.get('octo-org/payments#7')).toEqual(['bug']);
  });

  it('is recorded once, also if the worker is lost after it', async () => {
    await shop.definitions.saveConfiguration('acme', { name: 'triage', session, revision: 1 });
    const message = await shop.begin(workflow(LABEL), { terms: fixed });
    await processRun({ ...shop.worker, timeLeftMs: () => 0 }, message);
    await shop.finish(message);
    expect((await eventsOf(message)).filter((type) => type === 'run.target_resolved')).toHaveLength(1);
  });
});
