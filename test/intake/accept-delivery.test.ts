import { beforeEach, describe, expect, it } from 'vitest';
import { acceptDelivery } from '../../lambdas/intake/accept-delivery.ts';
import type { Delivery } from '../../lambdas/intake/delivery.ts';
import { assertChain } from '../fakes/assert-chain.ts';
import { automation, openIntake } from './intake-world.ts';

const delivery: Delivery = {
  source: 'github',
  event: 'issues.opened',
  key: 'github:delivery-1',
  subject: 'github:octo-org/payments#7',
  fields: { title: 'Checkout fails', number: 7 },
  makers: ['octocat'],
  payload: { action: 'opened' },
};
const DAY_MS = 24 * 60 * 60 * 1000;

let intake: ReturnType<typeof openIntake>;
beforeEach(async () => {
  intake = openIntake();
  await intake.definitions.saveAutomation('acme', automation('label-new-issue'));
});

const accept = (differing: Partial<Delivery> = {}, requestHash = 'hash') =>
  acceptDelivery(intake, 'acme', { ...delivery, ...differing }, requestHash);
const count = async (tenant = 'acme') => (await intake.runs.listRuns(tenant, { limit: 100 })).items.length;

describe('6.1 a delivery', () => {
  it('becomes a queued run with a pinned workflow version, the first commit of its chain and a message', async () => {
    const { runIds, deduplicated } = await accept();
    expect(deduplicated).toBe(false);
    const [runId = ''] = runIds;
    const loaded = await intake.runs.load('acme', runId);
    expect(loaded).toMatchObject({
      run: {
        status: 'queued',
        automation: 'label-new-issue',
        workflow: { name: 'label-new-issue', version: 3 },
        trigger: { source: 'github', event: 'issues.opened', key: 'github:delivery-1' },
        subject: 'github:octo-org/payments#7',
        createdAt: '2026-01-02T03:04:05.000Z',
        dueAt: '2026-01-02T03:05:05.000Z',
        deadlineAt: '2026-01-02T05:04:05.000Z',
      },
      trigger: { fields: delivery.fields, payload: delivery.payload },
    });
    const commits = await intake.runs.listCommits('acme', runId, { after: 0, limit: 10 });
    if (loaded) assertChain(loaded.run, commits);
    expect(intake.queue.receive()).toEqual([{ tenant: 'acme', runId }]);
  });

  it('repeated returns the same runs and starts none', async () => {
    const first = await accept();
    intake.queue.receive();
    expect(await accept()).toEqual({ runIds: first.runIds, deduplicated: true });
    expect(await count()).toBe(1);
    expect(intake.queue.receive()).toEqual([]);
  });

  it('received many times at once starts one run, and all responses name it', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => accept()));
    expect(new Set(answers.map(({ runIds }) => runIds.join())).size).toBe(1);
    expect(answers.filter(({ deduplicated }) => !deduplicated)).toHaveLength(1);
    expect(await count()).toBe(1);
  });

  it('repeated with another body is a conflict and starts no run', async () => {
    await accept();
    await expect(accept({}, 'another')).rejects.toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
    expect(await count()).toBe(1);
  });

  it('has an idempotency record for as long as GitHub can send it again', async () => {
    await accept();
    intake.clock.advance(8 * DAY_MS - 1);
    expect(await accept()).toMatchObject({ deduplicated: true });
    intake.clock.advance(1);
    expect(await accept()).toMatchObject({ deduplicated: false });
  });

  it('starts one run for each automation that matches', async () => {
    await intake.definitions.saveAutomation('acme', automation('also'));
    await intake.definitions.saveAutomation('acme', automation('not-this', { event: 'issues.closed' }));
    const { runIds } = await accept();
    const { items } = await intake.runs.listRuns('acme', { limit: 10 });
    expect(items.map((run) => run.automation).sort()).toEqual(['also', 'label-new-issue']);
    expect(items.map(({ runId }) => runId).sort()).toEqual([...runIds].sort());
  });

  it('without a matching automation starts no run and has no idempotency record', async () => {
    expect(await accept({ event: 'issues.closed' })).toEqual({ runIds: [], deduplicated: false });
    expect(await count()).toBe(0);
    expect(await accept()).toMatchObject({ deduplicated: false });
  });

  it('belongs to one tenant: the same key of another tenant is another delivery', async () => {
    await intake.definitions.saveAutomation('globex', automation('theirs'));
    await accept();
    const theirs = await acceptDelivery(intake, 'globex', delivery, 'hash');
    expect(theirs.deduplicated).toBe(false);
    expect(await count('globex')).toBe(1);
  });

  it('is accepted although its message cannot be sent: the run is due for the sweeper', async () => {
    intake = openIntake(() => Promise.reject(new Error('SQS is down')));
    await intake.definitions.saveAutomation('acme', automation('label-new-issue'));
    expect((await accept()).runIds).toHaveLength(1);
    expect(intake.log.messages('warn')).toEqual(['the step message could not be sent; the sweeper will send it']);
  });

  it('is refused if it matches more automations than one transaction can start', async () => {
    for (let index = 0; index < 33; index += 1) {
      await intake.definitions.saveAutomation('acme', automation(`automation-${index}`));
    }
    await expect(accept()).rejects.toThrow(/34 automations match/);
    expect(await count()).toBe(0);
  });

  it('starts the other automations when the filter of one is broken', async () => {
    await intake.definitions.saveAutomation('acme', automation('broken', { filter: '{% $error("no") %}' }));
    expect((await accept()).runIds).toHaveLength(1);
    expect(intake.log.messages('error')).toEqual(['the filter of an automation failed; no run is started']);
  });
});
