import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Worker } from '../../../lambdas/worker/worker.ts';
import { LABEL, NOTE, POST } from '../workflows.ts';
import { eventTypes, ISSUE, SYS_ID, Workshop } from '../workshop.ts';

const MINUTE_MS = 60_000;

/** 30 s of the function, 10 s of a request, 10 s between clocks. */
const QUARANTINE_MS = 50_000;

let shop: Workshop;
beforeEach(() => open());
afterEach(() => vi.unstubAllGlobals());

function open(differing: Partial<Worker> = {}): void {
  shop = new Workshop(differing);
  vi.stubGlobal('fetch', shop.outside.fetch);
}

const labels = () => shop.outside.issueLabels.get(ISSUE);
const notes = () => shop.outside.incidents.get(SYS_ID)?.workNotes ?? [];

describe('a write that was refused', () => {
  const waitedMs = () => shop.queue.delaysMs();

  it('waits up to 5 s, 30 s, 2 min, 10 min, with jitter, and then gives up', async () => {
    const message = await shop.begin(LABEL);
    shop.outside.next('POST github', ...Array(5).fill('unreachable'));
    const waits: number[] = [];
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      await shop.work(message);
      waits.push(...waitedMs());
      shop.clock.advance(waits.at(-1) ?? 0);
      shop.queue.receive();
    }
    // Half of each delay, because the random number is always one half here.
    expect(waits.slice(0, 4)).toEqual([2_500, 15_000, 60_000, 300_000]);
    const now = await shop.now(message);
    expect(now.run).toMatchObject({ status: 'failed_terminal', error: { code: 'RETRIES_EXHAUSTED' } });
    expect(now.steps).toMatchObject([{ status: 'failed_terminal', attempt: 5 }]);
    expect(labels()).toEqual(['bug']);
  });

  it('waits in failed_retryable until its backoff is over, and is not claimed before', async () => {
    const message = await shop.begin(LABEL);
    shop.outside.next('POST github', 'unreachable');
    await shop.work(message);
    const waiting = await shop.now(message);
    const retryAt = new Date(shop.clock.now() + 2_500).toISOString();
    expect(waiting.run).toMatchObject({ status: 'failed_retryable', dueAt: retryAt });
    expect(waiting.steps).toMatchObject([{ status: 'failed_retryable', retryAt, error: { code: 'TARGET_REFUSED' } }]);
    expect(waiting.receipts).toMatchObject([{ outcome: 'failed' }]);
    shop.clock.advance(2_499);
    await shop.work(message);
    expect(await shop.now(message)).toEqual(waiting);
    shop.clock.advance(1);
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('succeeded');
  });

  it('waits at least as long as the target asks', async () => {
    const message = await shop.begin(LABEL);
    shop.outside.next('POST github', { status: 429, retryAfterSeconds: 90 });
    await shop.work(message);
    expect(waitedMs()).toEqual([90_000]);
  });

  it('waits a minute when the target does not say how long to wait', async () => {
    const message = await shop.begin(LABEL);
    shop.outside.next('POST github', { status: 429 });
    await shop.work(message);
    expect(waitedMs()).toEqual([60_000]);
  });

  it('is tried as often as the workflow says', async () => {
    const message = await shop.begin(LABEL.replace('tool: github', 'retry: { attempts: 1 }, tool: github'));
    shop.outside.next('POST github', { status: 429 });
    await shop.work(message);
    expect((await shop.now(message)).run).toMatchObject({ status: 'failed_terminal' });
  });

  it('with an error that is not retryable fails the run at once', async () => {
    const message = await shop.begin(LABEL);
    shop.outside.next('POST github', { status: 422 });
    await shop.work(message);
    const now = await shop.now(message);
    expect(now.run).toMatchObject({ status: 'failed_terminal', error: { code: 'TARGET_REFUSED' } });
    expect(eventTypes(now)).not.toContain('step.retry_scheduled');
  });

  it('because the target could not be reached is tried again', async () => {
    const message = await shop.begin(NOTE);
    shop.outside.next('PATCH servicenow', 'unreachable');
    const { run } = await shop.finish(message);
    expect(run.status).toBe('succeeded');
    expect(notes()).toHaveLength(1);
    // Nothing to look for before it is sent; what was sent is read back.
    expect(shop.outside.calls.map(({ name }) => name)).toEqual(['PATCH servicenow', 'GET servicenow']);
  });
});

describe('a write whose outcome is unknown', () => {
  it('is quarantined before it is retried, with any jitter', async () => {
    open({ random: () => 0 });
    const message = await shop.begin(NOTE);
    shop.outside.next('PATCH servicenow', 'lost_answer');
    await shop.work(message);
    const now = await shop.now(message);
    expect(now.receipts).toMatchObject([{ outcome: 'unknown', error: { code: 'OUTCOME_UNKNOWN' } }]);
    expect(shop.queue.delaysMs()).toEqual([QUARANTINE_MS]);
    shop.clock.advance(QUARANTINE_MS - 1);
    await shop.work(message);
    expect(shop.outside.calls).toHaveLength(1);
  });

  it('is recovered when the probe finds it, and not repeated', async () => {
    const message = await shop.begin(NOTE);
    shop.outside.next('PATCH servicenow', 'lost_answer');
    const now = await shop.finish(message);
    expect(now.run.status).toBe('succeeded');
    expect(notes()).toHaveLength(1);
    expect(now.receipts).toMatchObject([{ outcome: 'succeeded', recovered: true, attempt: 2 }]);
    expect(now.commits.flatMap(({ events }) => events)).toContainEqual(
      expect.objectContaining({ type: 'write.settled', outcome: 'succeeded', recovered: true }),
    );
  });

  it('is repeated when the probe does not find it', async () => {
    const message = await shop.begin(NOTE);
    shop.outside.next('PATCH servicenow', 'lost_request');
    const now = await shop.finish(message);
    expect(now.run.status).toBe('succeeded');
    expect(notes()).toHaveLength(1);
    expect(now.receipts[0]).not.toHaveProperty('recovered');
  });

  it('is repeated without a probe when it is natural, and stores the values from before', async () => {
    const message = await shop.begin(LABEL);
    shop.outside.next('POST github', 'lost_answer');
    const now = await shop.finish(message);
    expect(now.run.status).toBe('succeeded');
    expect(labels()).toEqual(['bug', 'triage']);
    expect(shop.outside.callsOf('POST github')).toHaveLength(2);
    expect(now.receipts).toMatchObject([{ before: { triage: false } }]);
  });

  it('stays unknown after a refusal: the earlier request may have worked', async () => {
    const message = await shop.begin(LABEL);
    shop.outside.next('POST github', 'lost_answer', { status: 422 });
    const now = await shop.finish(message);
    expect(now.run).toMatchObject({ status: 'needs_human' });
    expect(await shop.runs.receipts('acme', [writeKey(now)])).toMatchObject([{ outcome: 'unknown' }]);
  });

  it('needs a human when every attempt and every probe was unknown', async () => {
    const message = await shop.begin(LABEL);
    shop.outside.next('POST github', { status: 500 });
    await shop.work(message);
    shop.outside.next('GET github', ...Array(9).fill({ status: 500 }));
    const { run, steps } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'needs_human', error: { code: 'OUTCOME_UNKNOWN' } });
    expect(steps).toMatchObject([{ status: 'failed_terminal', attempt: 8 }]);
  });

  it('is never repeated after a probe without a response', async () => {
    const message = await shop.begin(NOTE);
    shop.outside.next('PATCH servicenow', 'lost_answer');
    shop.outside.next('GET servicenow', { status: 503 }, 'lost_answer');
    const { run } = await shop.finish(message);
    expect(run.status).toBe('succeeded');
    expect(notes()).toHaveLength(1);
  });

  it('in Slack is recovered even if its worker is replaced late', async () => {
    const message = await shop.begin(POST);
    shop.outside.next('POST slack', 'lost_answer');
    await shop.work(message);
    shop.clock.advance(10 * MINUTE_MS);
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('succeeded');
    expect(shop.outside.channels.get('#incidents')).toHaveLength(1);
  });
});

const writeKey = (now: Awaited<ReturnType<Workshop['now']>>): string =>
  now.commits.flatMap(({ events }) =>
    events.flatMap((event) => (event.type === 'write.intended' ? [event.receiptKey] : [])),
  )[0] ?? '';

describe('an identical write', () => {
  it('of a second run is not made: that run gets the receipt of the first', async () => {
    const [first, second] = [await shop.begin(NOTE), await shop.begin(NOTE)];
    await shop.work(first);
    await shop.work(second);
    const now = await shop.now(second);
    expect(now.run.status).toBe('succeeded');
    expect(notes()).toHaveLength(1);
    expect(now.receipts).toMatchObject([{ runId: first.runId, outcome: 'succeeded' }]);
    expect(now.commits.at(-1)?.events).toContainEqual(
      expect.objectContaining({ type: 'write.reused', firstRunId: first.runId }),
    );
  });

  it('of a second run is made when the workflow wants it once per run', async () => {
    const yaml = NOTE.replace('tool:', 'dedupeScope: run, tool:');
    const [first, second] = [await shop.begin(yaml), await shop.begin(yaml)];
    await shop.work(first);
    await shop.work(second);
    expect(notes()).toHaveLength(2);
    expect((await shop.now(second)).receipts).toMatchObject([{ runId: second.runId }]);
  });

  it('of another run that is not finished is awaited, then reused', async () => {
    const [first, second] = [await shop.begin(NOTE), await shop.begin(NOTE)];
    shop.outside.next('PATCH servicenow', 'lost_answer');
    await shop.work(first);
    await shop.work(second);
    expect((await shop.now(second)).run).toMatchObject({ status: 'failed_retryable' });
    expect(notes()).toHaveLength(1);
    await shop.finish(first);
    expect((await shop.finish(second)).run.status).toBe('succeeded');
    expect(notes()).toHaveLength(1);
  });

  it('that failed before is made by the second run', async () => {
    const [first, second] = [await shop.begin(LABEL), await shop.begin(LABEL)];
    shop.outside.next('POST github', { status: 422 });
    await shop.work(first);
    await shop.work(second);
    expect((await shop.now(second)).run.status).toBe('succeeded');
    expect(labels()).toEqual(['bug', 'triage']);
  });

  it('later in the same run gets the receipt of the first', async () => {
    const write = `tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: "seen" }`;
    const between = `tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [triage] }`;
    const message = await shop.begin(
      `name: apart\nsteps:\n  - { id: a, ${write} }\n  - { id: b, ${between} }\n  - { id: c, ${write} }`,
    );
    await shop.work(message);
    const { run, steps } = await shop.now(message);
    expect(run.status).toBe('succeeded');
    expect(notes()).toHaveLength(1);
    expect(steps[2]).toMatchObject({ receiptKey: steps[0]?.status === 'succeeded' && steps[0].receiptKey });
  });

  it('in the very next step gets the receipt of the first', async () => {
    const write = `tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: "seen" }`;
    const message = await shop.begin(`name: adjacent\nsteps:\n  - { id: a, ${write} }\n  - { id: b, ${write} }`);
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('succeeded');
    expect(notes()).toHaveLength(1);
  });
});
