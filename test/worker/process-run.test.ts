import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { StepMessage } from '../../lambdas/run-changes/step-queue.ts';
import type { Worker } from '../../lambdas/worker/worker.ts';
import { LABEL, NOTE, TRIAGE } from './workflows.ts';
import { ISSUE, SYS_ID, statuses, Workshop } from './workshop.ts';

const MINUTE_MS = 60_000;
/** The figures of the source documents, not the constants of the code. */
const LEASE_MS = 60_000;
const TWO_HOURS_MS = 7_200_000;
const DAY_MS = 86_400_000;

let shop: Workshop;
beforeEach(() => open());
afterEach(() => vi.unstubAllGlobals());

function open(differing: Partial<Worker> = {}): void {
  shop = new Workshop(differing);
  vi.stubGlobal('fetch', shop.outside.fetch);
}

const labels = () => shop.outside.issueLabels.get(ISSUE);
const notes = () => shop.outside.incidents.get(SYS_ID)?.workNotes ?? [];

describe('a run', () => {
  it('is processed from its first step to its terminal commit in one invocation, with a receipt for each write', async () => {
    const message = await shop.begin(TRIAGE);
    await shop.work(message);
    const now = await shop.now(message);

    expect(now.run).toMatchObject({ status: 'succeeded', durationMs: 0, enrichment: { title: 'Checkout fails' } });
    expect(now.run).not.toHaveProperty('dueAt');
    expect(now.steps.map(({ id, status }) => [id, status])).toEqual([
      ['route', 'succeeded'],
      ['assign', 'succeeded'],
      ['note', 'succeeded'],
      ['label', 'succeeded'],
    ]);
    expect(shop.outside.incidents.get(SYS_ID)?.fields.category).toBe('database');
    expect(notes()).toEqual([expect.stringMatching(/^To database, run run_00000001\n\[countersign:[0-9a-f]{20}\]$/)]);
    expect(labels()).toEqual(['bug', 'triage']);
    expect(now.receipts.map(({ stepId, outcome, attempt }) => [stepId, outcome, attempt])).toEqual([
      ['assign', 'succeeded', 1],
      ['note', 'succeeded', 1],
      ['label', 'succeeded', 1],
    ]);
    expect(now.receipts[0]).toMatchObject({
      target: `servicenow:acme:incident:${SYS_ID}`,
      fields: ['category'],
      before: { category: '' },
      reversal: { tool: 'servicenow.incident.update', input: { sysId: SYS_ID, fields: { category: '' } } },
    });
  });

  it('takes the lease and intent of the next step in the commit of the outcome', async () => {
    const message = await shop.begin(TRIAGE);
    await shop.work(message);
    const commits = (await shop.now(message)).commits.map(({ events }) => events.map(({ type }) => type));
    const handOver = ['write.settled', 'step.succeeded', 'policy.decided', 'step.claimed', 'write.intended'];
    expect(commits).toEqual([
      ['run.accepted'],
      [
        ...['run.status_changed', 'run.enriched', 'run.status_changed', 'run.status_changed'],
        ...['step.succeeded', 'policy.decided', 'step.claimed', 'write.intended'],
      ],
      handOver,
      handOver,
      ['write.settled', 'step.succeeded', 'run.status_changed'],
    ]);
  });

  it('requests the evidence at once, and the run is due until it is sealed', async () => {
    const message = await shop.begin(LABEL);
    await shop.work(message);
    expect(shop.outbox.receiveSeals()).toEqual([
      { kind: 'seal_evidence', entryId: `acme.${message.runId}.seal_evidence`, ...message },
    ]);
    expect((await shop.now(message)).run).toHaveProperty('sealDueAt');
    await shop.finish(message);
    expect(await shop.runs.evidence(message.tenant, message.runId)).toBeDefined();
    expect((await shop.now(message)).run).not.toHaveProperty('sealDueAt');
    expect((await shop.runs.openOutbox('acme', 10)).entries).toEqual([]);
  });

  it('requests the evidence again if the run is due, with an outbox entry, so that operators see it if that fails, too', async () => {
    const message = await shop.begin(LABEL);
    await shop.work(message);
    shop.outbox.receiveSeals();
    await shop.work(message);
    expect(shop.outbox.receiveSeals()).toEqual([]);
    shop.clock.advance(2 * 60_000);
    await shop.work(message);
    expect(shop.outbox.receiveSeals()).toHaveLength(1);
    expect((await shop.runs.openOutbox('acme', 10)).entries).toMatchObject([{ kind: 'seal_evidence', attempts: 1 }]);
    await shop.work(message);
    expect(shop.outbox.receiveSeals()).toEqual([]);
  });

  it('commits the intent before it sends the write', async () => {
    const message = await shop.begin(LABEL);
    const order: string[] = [];
    shop.disturb((name, run) => {
      order.push(name);
      return run();
    });
    await shop.work(message);
    expect(order).toEqual(['load', 'commit', 'GET github', 'POST github', 'commit', 'outbox.seal_evidence']);
  });

  it('has only metadata in its events', async () => {
    const message = await shop.begin(TRIAGE, { trigger: { fields: { title: 'CANARY-title', number: 7 } } });
    await shop.work(message);
    const events = JSON.stringify((await shop.now(message)).commits);
    for (const text of ['CANARY-title', 'To database', 'database']) expect(events).not.toContain(text);
  });

  it('skips a step whose condition is false, and succeeds', async () => {
    const message = await shop.begin(`
name: maybe
steps:
  - { id: skipped, tool: github.labels.add, when: "{% trigger.number = 8 %}", with: { owner: octo-org, repo: payments, number: 7, labels: [a] } }
  - { id: runs, tool: transform, when: "{% trigger.number = 7 %}", with: { was: "{% steps.skipped.output %}" } }
`);
    await shop.work(message);
    const { run, steps } = await shop.now(message);
    expect(run.status).toBe('succeeded');
    expect(steps).toMatchObject([{ skipped: true, output: null }, { output: { was: null } }]);
    expect(shop.outside.calls).toEqual([]);
  });

  it('ignores a run that has ended or does not exist', async () => {
    const message = await shop.begin(LABEL);
    await shop.work(message);
    await shop.work(message);
    await shop.work({ ...message, runId: 'run_ffffffff' });
    expect((await shop.now(message)).run.seq).toBe(3);
    expect(shop.outside.callsOf('POST github')).toHaveLength(1);
  });

  it('fails a run whose trigger has no title, with the reason', async () => {
    const message = await shop.begin(LABEL, { trigger: { fields: {} } });
    await shop.work(message);
    const now = await shop.now(message);
    expect(now.run).toMatchObject({ status: 'failed_terminal', error: { code: 'ENRICHMENT_FAILED' } });
    expect(statuses(now)).toEqual(['enriching', 'failed_terminal']);
  });

  it.each([
    ['an expression that fails', 'transform', '{ x: "{% $error(1) %}" }', 'EXPRESSION_FAILED'],
    [
      'input of another shape',
      'github.labels.add',
      '{ owner: "{% \'not a name!\' %}", repo: r, number: 1, labels: [a] }',
      'INPUT_INVALID',
    ],
  ])('fails on %s before anything is written', async (_what, tool, input, code) => {
    const message = await shop.begin(`name: broken\nsteps:\n  - { id: only, tool: ${tool}, with: ${input} }`);
    await shop.work(message);
    const { run, steps } = await shop.now(message);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code } });
    expect(steps).toMatchObject([{ status: 'failed_terminal', error: { code } }]);
    expect(shop.outside.calls).toEqual([]);
  });

  it('fails on a connection that is missing, before anything is written', async () => {
    const { MemoryConnections } = await import('../fakes/memory/memory-connections.ts');
    open({ connections: new MemoryConnections({}) });
    const message = await shop.begin(LABEL);
    await shop.work(message);
    expect((await shop.now(message)).run).toMatchObject({ error: { code: 'CONNECTION_MISSING' } });
  });
});

describe('many inner steps', () => {
  const inner = (count: number) =>
    `name: inner\nsteps:\n${Array.from({ length: count }, (_, index) => `  - { id: s${index}, tool: transform, with: { at: ${index} } }`).join('\n')}`;

  it('25 in a row finish in two commits, with a message between them', async () => {
    const message = await shop.begin(inner(25));
    await shop.work(message);
    const between = await shop.now(message);
    expect(between.run).toMatchObject({ status: 'running', seq: 2 });
    expect(between.steps).toHaveLength(20);
    expect(shop.queue.receive()).toEqual([message]);
    await shop.work(message);
    const now = await shop.now(message);
    expect(now.run).toMatchObject({ status: 'succeeded', seq: 3 });
    expect(now.steps.map((step) => step.status === 'succeeded' && step.output)).toEqual(
      Array.from({ length: 25 }, (_, at) => ({ at })),
    );
  });

  it('out of time, a worker leaves the next step to the next worker', async () => {
    let time = true;
    open({ timeLeftMs: () => (time ? 30_000 : 0) });
    const message = await shop.begin(TRIAGE);
    shop.disturb(async (name, run) => {
      if (name === 'PATCH servicenow') time = false;
      return run();
    });
    await shop.work(message);
    const between = await shop.now(message);
    expect(between.steps.map(({ id, status }) => [id, status])).toEqual([
      ['route', 'succeeded'],
      ['assign', 'succeeded'],
    ]);
    expect(between.run).toMatchObject({ status: 'running', dueAt: new Date(shop.clock.now() + 60_000).toISOString() });
    expect(notes()).toEqual([]);
    expect(shop.queue.receive()).toEqual([message]);
    shop.disturb((_name, run) => run());
    time = true;
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('succeeded');
    expect(notes()).toHaveLength(1);
  });
});

describe('leases', () => {
  /** A worker that is killed while its write is on its way. */
  async function abandonedAt(name: string, yaml: string): Promise<StepMessage> {
    const message = await shop.begin(yaml);
    const { promise: stopped, resolve } = Promise.withResolvers<void>();
    shop.disturb(async (passing, run) => {
      if (passing !== name) return run();
      resolve();
      return new Promise(() => {});
    });
    void shop.work(message);
    await stopped;
    shop.disturb((_name, run) => run());
    return message;
  }

  it('keep a second worker out until they expire', async () => {
    const message = await abandonedAt('POST github', LABEL);
    shop.clock.advance(LEASE_MS - 1);
    await shop.work(message);
    expect(labels()).toEqual(['bug']);
    shop.clock.advance(1);
    await shop.work(message);
    const { run, steps } = await shop.now(message);
    expect(run.status).toBe('succeeded');
    expect(steps).toMatchObject([{ attempt: 2, leaseVersion: 2 }]);
    expect(labels()).toEqual(['bug', 'triage']);
  });

  it('make the run due when they expire, so that the sweeper finds it', async () => {
    const message = await abandonedAt('POST github', LABEL);
    const { run } = await shop.now(message);
    expect(run).toMatchObject({ dueAt: new Date(shop.clock.now() + LEASE_MS).toISOString() });
  });

  it('fence a worker that continues late: its commit loses, and it writes nothing more', async () => {
    const message = await shop.begin(TRIAGE);
    const { promise: asleep, resolve: fallAsleep } = Promise.withResolvers<void>();
    const { promise: awake, resolve: wake } = Promise.withResolvers<void>();
    let first = true;
    shop.disturb(async (name, run) => {
      const result = await run();
      if (name === 'PATCH servicenow' && first) {
        first = false;
        fallAsleep();
        await awake;
      }
      return result;
    });
    const staleWorker = shop.work(message);
    await asleep;
    shop.clock.advance(LEASE_MS);
    await shop.work(message);
    const settled = await shop.now(message);
    expect(settled.run.status).toBe('succeeded');
    wake();
    await staleWorker;
    expect(await shop.now(message)).toEqual(settled);
    expect(notes()).toHaveLength(1);
  });

  it('let one of two workers with the same message process the run', async () => {
    const message = await shop.begin(NOTE);
    await Promise.all([shop.work(message), shop.work(message), shop.work(message)]);
    expect(notes()).toHaveLength(1);
    expect((await shop.now(message)).run).toMatchObject({ status: 'succeeded', seq: 3 });
  });
});

describe('the deadline', () => {
  it('ends a wait for a signal that has no timeout, and names the signal', async () => {
    const message = await shop.begin(
      'name: waits\nsteps:\n  - { id: signal, tool: wait.external, with: { event: go } }',
    );
    await shop.work(message);
    const { run, steps } = await shop.now(message);
    // Two hours: the number of the source document, not the constant.
    expect(Date.parse(run.deadlineAt) - Date.parse(run.createdAt)).toBe(2 * 60 * 60 * 1000);
    expect(steps).toMatchObject([{ status: 'waiting_external', awaits: { kind: 'signal', until: run.deadlineAt } }]);
    const { run: ended } = await shop.finish(message);
    const why = expect.stringContaining('it waited for the signal "go"');
    expect(ended).toMatchObject({ status: 'timed_out', error: { code: 'RUN_TIMED_OUT', message: why } });
  });

  it('ends a run that waits for a retry', async () => {
    const message = await shop.begin(LABEL);
    shop.outside.next('POST github', { status: 429, retryAfterSeconds: 86_400 });
    await shop.work(message);
    expect((await shop.now(message)).run).toMatchObject({
      status: 'failed_retryable',
      dueAt: new Date(shop.clock.now() + TWO_HOURS_MS).toISOString(),
    });
    shop.clock.advance(TWO_HOURS_MS);
    await shop.work(message);
    const now = await shop.now(message);
    expect(now.run).toMatchObject({
      status: 'timed_out',
      error: { code: 'RUN_TIMED_OUT' },
      durationMs: TWO_HOURS_MS,
    });
    expect(now.commits.at(-1)?.events).toContainEqual(expect.objectContaining({ initiator: 'timeout' }));
    expect(labels()).toEqual(['bug']);
  });

  it('ends a run that was never started, and not one that finishes in time', async () => {
    const [early, late] = [await shop.begin(NOTE), await shop.begin(LABEL)];
    shop.clock.advance(TWO_HOURS_MS - 1);
    await shop.work(early);
    shop.clock.advance(1);
    await shop.work(late);
    expect((await shop.now(early)).run.status).toBe('succeeded');
    expect((await shop.now(late)).run.status).toBe('timed_out');
  });
});

describe('an approval step', () => {
  const GATED = `
name: gated
steps:
  - { id: gate, tool: approval }
  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [triage] } }
`;

  it('stops the run until someone decides: the approval is requested and its card is posted', async () => {
    const message = await shop.begin(GATED);
    await shop.work(message);
    const { run, steps } = await shop.now(message);
    expect(run.status).toBe('waiting_approval');
    const { approvalId } = steps[0] as { approvalId: string };
    const expiresAt = new Date(shop.clock.now() + DAY_MS).toISOString();
    expect(await shop.runs.approval('acme', message.runId, approvalId)).toMatchObject({
      status: 'requested',
      stepId: 'gate',
      expiresAt,
    });
    expect(shop.outbox.receiveAnnouncements()).toMatchObject([{ approvalId, ...message }]);
    expect(shop.outbox.startedApprovals()).toEqual([]);
    shop.clock.advance(DAY_MS - 1);
    await shop.work(message);
    expect((await shop.now(message)).run.seq).toBe(run.seq);
    expect(shop.outside.calls).toEqual([]);
  });

  it('that nobody decides expires, which is not a rejection, and the run fails', async () => {
    const message = await shop.begin(GATED);
    await shop.work(message);
    const { approvalId } = (await shop.now(message)).steps[0] as { approvalId: string };
    shop.clock.advance(DAY_MS);
    await shop.work(message);
    const { run, steps } = await shop.now(message);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'APPROVAL_EXPIRED' } });
    expect(steps).toMatchObject([{ status: 'failed_terminal' }]);
    expect((await shop.runs.approval('acme', message.runId, approvalId))?.status).toBe('expired');
    expect(shop.outside.calls).toEqual([]);
  });

  it('is expired by the sweeper even if its state machine was never started', async () => {
    const message = await shop.begin(GATED);
    shop.disturb((name, run) => (name.startsWith('outbox') ? Promise.reject(new Error('down')) : run()));
    await shop.work(message);
    const { run } = await shop.now(message);
    expect(run.status).toBe('waiting_approval');
    const due = new Date(shop.clock.now() + DAY_MS + MINUTE_MS).toISOString();
    expect(run).toMatchObject({ dueAt: due });
  });
});

describe('the receipt of a failed run', () => {
  it.each([
    ['a refused write', [{ status: 422 }], 'failed'],
    ['an unknown one', ['lost_answer', { status: 422 }] as const, 'unknown'],
  ])('of %s is found from its step', async (_what, faults, outcome) => {
    const message = await shop.begin(LABEL);
    shop.outside.next('POST github', ...faults);
    const { receipts } = await shop.finish(message);
    expect(receipts).toMatchObject([{ outcome }]);
  });

  it('shows that the write was made, even if its output is too large and the step fails', async () => {
    const message = await shop.begin(LABEL);
    const huge = Array.from({ length: 100 }, () => ({ name: 'x'.repeat(1_000) }));
    shop.outside.next('POST github', { body: huge });
    await shop.work(message);
    const { run, receipts } = await shop.now(message);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'OUTPUT_TOO_LARGE' } });
    expect(receipts).toMatchObject([{ outcome: 'succeeded' }]);
  });

  it('is not made for a transform whose output is too large', async () => {
    const keys = Array.from({ length: 10 }, (_, index) => `k${index}: "{% $pad('x', 60000) %}"`).join(', ');
    const message = await shop.begin(`name: big\nsteps:\n  - { id: big, tool: transform, with: { ${keys} } }`);
    await shop.work(message);
    expect((await shop.now(message)).run).toMatchObject({ error: { code: 'OUTPUT_TOO_LARGE' } });
  });
});

describe('lost messages', () => {
  it('lose no run: the sweeper finishes it without them', async () => {
    const message = await shop.begin(TRIAGE);
    shop.disturb((name, run) =>
      name === 'outbox.seal_evidence' && shop.clock.now() % 2 ? Promise.reject(new Error('lost')) : run(),
    );
    shop.queue.purge();
    const { run } = await shop.finish(message);
    expect(run.status).toBe('succeeded');
  });

  it('do not fail the worker: its commits remain', async () => {
    const message = await shop.begin(LABEL);
    shop.outside.next('POST github', { status: 429 });
    shop.disturb((name, run) => (name === 'queue.send' ? Promise.reject(new Error('SQS is down')) : run()));
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('failed_retryable');
    expect(shop.log.messages('warn')).toContain('a message could not be sent; the sweeper will');
    shop.disturb((_name, run) => run());
    expect((await shop.finish(message)).run.status).toBe('succeeded');
  });
});
