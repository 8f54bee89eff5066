import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Caps } from '../../lambdas/run/settings/caps.ts';
import type { StepMessage } from '../../lambdas/run-changes/step-queue.ts';
import { processRun } from '../../lambdas/worker/process-run.ts';
import { Workshop } from './workshop.ts';

let shop: Workshop;
beforeEach(() => {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
});

/** A run needs a slot only if it is `running` between two commits. */
afterEach(() => vi.unstubAllGlobals());

const WRITE =
  '{ id: label, tool: github.labels.add, dedupeScope: run, with: { owner: octo-org, repo: payments, number: 7, labels: [x] } }';
const workflow = (name: string, settings = '', step = WRITE) => `name: ${name}\n${settings}\nsteps:\n  - ${step}\n`;
/** Has its concurrency key, and no slot, while it waits. */
const KEYED = workflow(
  'keyed',
  'concurrencyKey: "{% trigger.source %}"',
  '{ id: hold, tool: wait.external, with: { event: go } }',
);
const FREE = workflow('free');

const allow = (caps: Caps, counterShards = 1) =>
  shop.definitions.saveSettings('acme', { caps, workspaces: {}, counterShards });
const statusOf = async (message: StepMessage) => (await shop.now(message)).run.status;
const counters = () =>
  [...shop.runs.inside.caps.counters()].map(({ workflow, running }) => [workflow ?? 'the tenant', running]);

/** Starts a run and leaves it `running`, with its slot, because this worker has no time left. */
async function begun(yaml: string): Promise<StepMessage> {
  const message = await shop.begin(yaml);
  await processRun({ ...shop.worker, timeLeftMs: () => 0 }, message);
  shop.queue.receive();
  expect(await statusOf(message)).toBe('running');
  return message;
}
async function tried(yaml: string): Promise<StepMessage> {
  const message = await shop.begin(yaml);
  await shop.work(message);
  shop.clock.advance(1);
  return message;
}
/** Processes only the messages that are in the queue now, without a sweep. */
async function deliverAll(): Promise<number> {
  let delivered = 0;
  for (let due = shop.queue.receive(); due.length > 0; due = shop.queue.receive()) {
    for (const message of due) await shop.work(message);
    delivered += due.length;
  }
  return delivered;
}

describe('a slot that becomes free', () => {
  it('goes to the next run that can start, past those whose concurrency key is taken', async () => {
    await allow({ maxConcurrency: 1 });
    const holder = await shop.begin(KEYED);
    await shop.work(holder);
    expect(await statusOf(holder)).toBe('waiting_external');
    const running = await begun(FREE);
    const blocked = [await tried(KEYED), await tried(KEYED), await tried(KEYED)];
    const free = await tried(FREE);
    await shop.work(running);
    await deliverAll();
    expect(await statusOf(free)).toBe('succeeded');
    for (const message of blocked) expect(await statusOf(message)).toBe('queued');
  });

  it('is offered once to each waiting run', async () => {
    await allow({ maxConcurrency: 1 });
    await shop.work(await shop.begin(KEYED));
    const running = await begun(FREE);
    for (let each = 0; each < 40; each += 1) await tried(KEYED);
    const last = await tried(FREE);
    await shop.work(running);
    expect(await deliverAll()).toBeLessThan(100);
    expect(await statusOf(last)).toBe('succeeded');
  });

  it('goes past a workflow that is at its cap', async () => {
    await allow({ maxConcurrency: 2 });
    const single = workflow('single', 'caps: { maxConcurrency: 1 }');
    await begun(single);
    const running = await begun(FREE);
    const second = await tried(single);
    const free = await tried(FREE);
    await shop.work(running);
    await deliverAll();
    expect([await statusOf(second), await statusOf(free)]).toEqual(['queued', 'succeeded']);
  });

  it('wakes one run, not all, when the tenant has no other slot', async () => {
    await allow({ maxConcurrency: 1 });
    const running = await begun(FREE);
    for (let each = 0; each < 5; each += 1) await tried(FREE);
    await shop.work(running);
    expect(shop.queue.receive()).toHaveLength(1);
  });
});

describe('the cap of a workflow', () => {
  const single = workflow('single', 'caps: { maxConcurrency: 1 }');

  it('counts the runs of that workflow, not those of others', async () => {
    await allow({ maxConcurrency: 5 });
    await begun(FREE);
    await begun(FREE);
    await begun(single);
    expect(await statusOf(await tried(single))).toBe('queued');
    expect(counters()).toEqual([
      ['the tenant', 3],
      ['single', 1],
    ]);
  });

  it('writes no counter for a tenant without a cap, and returns its own slot', async () => {
    const first = await begun(single);
    const second = await tried(single);
    expect(counters()).toEqual([['single', 1]]);
    await shop.work(first);
    await deliverAll();
    expect([await statusOf(first), await statusOf(second)]).toEqual(['succeeded', 'succeeded']);
    expect(counters()).toEqual([['single', 0]]);
  });

  it('does not change the tenant’s cap, which counts all runs', async () => {
    await allow({ maxConcurrency: 2 });
    await begun(FREE);
    await begun(single);
    expect(await statusOf(await tried(workflow('another', 'caps: { maxConcurrency: 5 }')))).toBe('queued');
  });

  it('of starts per minute counts the starts of that workflow', async () => {
    await allow({ maxRunsPerMinute: 10 });
    const hourly = workflow('hourly', 'caps: { maxRunsPerMinute: 1 }');
    await tried(FREE);
    await tried(FREE);
    expect(await statusOf(await tried(hourly))).toBe('succeeded');
    expect(await statusOf(await tried(hourly))).toBe('queued');
  });

  it('that is not set writes no counter', async () => {
    await tried(FREE);
    expect(counters()).toEqual([]);
  });
});
