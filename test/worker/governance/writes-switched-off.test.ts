import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CachedDefinitions, CHANGES_SEEN_WITHIN_MS } from '../../../lambdas/pipeline/cached-definitions.ts';
import { controlRun } from '../../../lambdas/run-changes/control/control-run.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { Workshop } from '../workshop.ts';

let shop: Workshop;
beforeEach(() => {
  shop = new Workshop();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const LABEL =
  'name: label\nsteps:\n  - { id: label, tool: github.labels.add, dedupeScope: run, retry: { attempts: 1 }, with: { owner: octo-org, repo: payments, number: 7, labels: [x] } }\n';

const turn = (on: boolean) =>
  shop.definitions.saveSettings('acme', {
    ...{ caps: {}, workspaces: {}, counterShards: 1 },
    features: { 'writes.enabled': on },
  });
const labels = () => shop.outside.calls.filter(({ name }) => name === 'POST github').length;
const step = async (message: StepMessage) => (await shop.now(message)).steps[0];

describe('while writes are switched off', () => {
  it('a step that would write waits, and is made once, with its only attempt, when they are on again', async () => {
    await turn(false);
    const message = await shop.begin(LABEL);
    for (let round = 0; round < 5; round += 1) {
      await shop.work(message);
      shop.clock.advance(61_000);
    }
    expect(await step(message)).toMatchObject({ status: 'failed_retryable', flag: 'writes.enabled' });
    expect(labels()).toBe(0);
    await turn(true);
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect(labels()).toBe(1);
  });

  it('a write that was claimed before is not sent: the switch is checked just before the request', async () => {
    const message = await shop.begin(LABEL);
    const { settings } = shop.worker.definitions;
    let asked = 0;
    // On when the step is claimed, off when its request would be sent.
    vi.spyOn(shop.worker.definitions, 'settings').mockImplementation(async (tenant) => {
      asked += 1;
      const found = await settings.call(shop.definitions, tenant);
      return asked === 1 ? found : { ...found, features: { 'writes.enabled': false } };
    });
    await shop.work(message);
    expect(asked).toBeGreaterThan(1);
    expect(labels()).toBe(0);
    expect(await step(message)).toMatchObject({
      status: 'failed_retryable',
      attempt: 0,
      error: { code: 'WRITES_DISABLED' },
    });
    vi.restoreAllMocks();
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect(labels()).toBe(1);
  });

  it('nothing is sent if it cannot be read whether writes are on, and that is no attempt', async () => {
    const message = await shop.begin(LABEL);
    const { settings } = shop.worker.definitions;
    let asked = 0;
    vi.spyOn(shop.worker.definitions, 'settings').mockImplementation(async (tenant) => {
      asked += 1;
      if (asked > 1) throw new Error('throttled');
      return settings.call(shop.definitions, tenant);
    });
    await shop.work(message);
    expect(labels()).toBe(0);
    expect(await step(message)).toMatchObject({
      flag: 'writes.enabled',
      attempt: 0,
      error: { code: 'WRITES_DISABLED' },
    });
    vi.restoreAllMocks();
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect(labels()).toBe(1);
  });

  it('a run waits longer than its deadline, with one commit, and records the flags of its start', async () => {
    await turn(false);
    const message = await shop.begin(LABEL);
    await shop.work(message);
    const { run } = await shop.now(message);
    expect(run).toMatchObject({
      status: 'failed_retryable',
      flags: { 'worker_orchestration.enabled': true, 'writes.enabled': false },
    });
    for (let hour = 0; hour < 5; hour += 1) {
      shop.clock.advance(3_600_000);
      await shop.sweep();
      await shop.work(message);
    }
    expect((await shop.now(message)).run.seq).toBe(run.seq);
    await turn(true);
    const ended = await shop.finish(message);
    expect(ended.run.status).toBe('succeeded');
    expect(Date.parse(ended.run.deadlineAt) - Date.parse(run.deadlineAt)).toBeGreaterThanOrEqual(5 * 3_600_000);
    const events = ended.commits.flatMap((commit) => commit.events);
    expect(events.filter((event) => event.type === 'step.retry_scheduled')).toMatchObject([{ flag: 'writes.enabled' }]);
  });

  it('the first sweeps after they are on send every run that waits, whenever it would be due', async () => {
    await turn(false);
    const messages = [await shop.begin(LABEL), await shop.begin(LABEL)];
    for (const message of messages) await shop.work(message);
    // Sent less and less often: after an hour, each run is due some minutes from now.
    for (let minute = 0; minute < 60; minute += 1) {
      shop.clock.advance(60_000);
      await shop.sweep();
    }
    shop.queue.receive();
    await turn(true);
    shop.clock.advance(60_000);
    await shop.sweep();
    const sent = shop.queue.receive().map(({ runId }) => runId);
    expect(new Set(sent)).toEqual(new Set(messages.map(({ runId }) => runId)));
  });

  it('an undo waits, too', async () => {
    const message = await shop.begin(`${LABEL}  - { id: hold, tool: wait.external, with: { event: go } }\n`);
    await shop.work(message);
    expect(labels()).toBe(1);
    await turn(false);
    await controlRun(shop.worker, message, { kind: 'rollback' }, 'olivia');
    await shop.work(message);
    const undone = () => shop.outside.calls.filter(({ name }) => name === 'DELETE github').length;
    expect((await shop.now(message)).steps.at(-1)).toMatchObject({ id: 'undo_label', flag: 'writes.enabled' });
    expect(undone()).toBe(0);
    await turn(true);
    expect((await shop.finish(message)).run.status).toBe('canceled');
    expect(undone()).toBe(1);
  });
});

it('a warm function sees the switch within the time that the API states', async () => {
  const cached = new CachedDefinitions(shop.definitions, () => shop.clock.now());
  await cached.settings('acme');
  await turn(false);
  shop.clock.advance(CHANGES_SEEN_WITHIN_MS);
  expect((await cached.settings('acme')).features).toEqual({ 'writes.enabled': false });
  expect(CHANGES_SEEN_WITHIN_MS).toBe(60_000);
});

it('off, and on again, with 200 runs in progress loses nothing and writes nothing twice', async () => {
  const messages: StepMessage[] = [];
  for (let run = 0; run < 200; run += 1) {
    if (run === 70) await turn(false);
    if (run === 140) await turn(true);
    messages.push(await shop.begin(LABEL));
    const message = messages[run] as StepMessage;
    await shop.work(message);
    if (run >= 70 && run < 140) expect((await step(message))?.status).toBe('failed_retryable');
  }
  expect(labels()).toBe(130);
  for (const message of messages) expect((await shop.finish(message)).run.status).toBe('succeeded');
  expect(labels()).toBe(200);
});
