import { beforeEach, describe, expect, it } from 'vitest';
import { SIGNED_BODY_MAX_BYTES } from '../../lambdas/entry/body-limits.ts';
import { receiveWebhook } from '../../lambdas/intake/webhook.ts';
import { automation, GITHUB, ISSUE_OPENED, openIntake, webhook } from './intake-world.ts';

let intake: ReturnType<typeof openIntake>;
beforeEach(async () => {
  intake = openIntake();
  await intake.definitions.saveAutomation('acme', automation('label-new-issue'));
});

const receive = (event: ReturnType<typeof webhook>) => receiveWebhook(intake, GITHUB, event);
const problem = (status: number) => expect.objectContaining({ status });
const count = async () => (await intake.runs.listRuns('acme', { limit: 100 })).items.length;

describe('a webhook', () => {
  it('with a valid signature and body is accepted with its run', async () => {
    const answer = await receive(webhook(ISSUE_OPENED));
    expect(answer.statusCode).toBe(202);
    expect(JSON.parse(answer.body ?? '')).toEqual({ runIds: ['run_00000001'], deduplicated: false });
  });

  it('is checked with the bytes as sent, also in base64', async () => {
    const body = Buffer.from(ISSUE_OPENED).toString('base64');
    expect((await receive({ ...webhook(ISSUE_OPENED), body, isBase64Encoded: true })).statusCode).toBe(202);
  });

  it.each([
    ['a wrong signature', webhook(ISSUE_OPENED, { secret: 'wrong' })],
    ['no signature', webhook(ISSUE_OPENED, { headers: { 'x-hub-signature-256': '' } })],
    ['an unknown tenant', webhook(ISSUE_OPENED, { pathParameters: { tenant: 'initech' } })],
    ['a body that was changed', { ...webhook(ISSUE_OPENED), body: `${ISSUE_OPENED} ` }],
    ['garbage, unsigned', webhook('{', { secret: 'wrong' })],
  ])('with %s is unauthorized with the same message, and nothing is written', async (_what, event) => {
    await expect(receive(event)).rejects.toMatchObject({
      status: 401,
      message:
        'the signature does not match this tenant, body and time; check the signing secret and the clock of the sender',
    });
    expect(await count()).toBe(0);
    expect(intake.queue.receive()).toEqual([]);
  });

  it.each([
    ['malformed JSON', '{"action":'],
    ['an empty body', ''],
    ['a form without JSON', 'payload=checkout'],
    ['a form of several fields', 'payload=%7B%7D&payload=%7B%7D'],
    ['a form that is cut off', 'payload=%7'],
    ['too deep a body', '['.repeat(100) + ']'.repeat(100)],
  ])('with %s is a bad request', async (_what, body) => {
    await expect(receive(webhook(body))).rejects.toEqual(problem(400));
    expect(await count()).toBe(0);
  });

  it('with a number beyond the range of a double is a bad request, not an internal error', async () => {
    await expect(receive(webhook(ISSUE_OPENED.replace('7', '1e400')))).rejects.toEqual(problem(400));
    expect(await count()).toBe(0);
  });

  it('with a lone surrogate is accepted, and the surrogate replaced so that it can be hashed', async () => {
    await receive(webhook(ISSUE_OPENED.replace('fails', '\\ud83d fails')));
    const [run] = (await intake.runs.listRuns('acme', { limit: 1 })).items;
    const loaded = await intake.runs.load('acme', run?.runId ?? '');
    expect(loaded?.trigger.fields.title).toBe('Checkout \ufffd fails');
  });

  it('that is too large is refused before it is read', async () => {
    const body = `"${'x'.repeat(SIGNED_BODY_MAX_BYTES)}"`;
    await expect(receive(webhook(body, { secret: 'wrong' }))).rejects.toEqual(problem(413));
  });

  it('repeated with another body is a conflict', async () => {
    await receive(webhook(ISSUE_OPENED));
    await expect(receive(webhook(ISSUE_OPENED.replace('7', '8')))).rejects.toEqual(problem(409));
    expect(await count()).toBe(1);
  });

  it('without a matching automation is accepted and starts no run', async () => {
    const answer = await receive(webhook(ISSUE_OPENED.replace('opened', 'closed')));
    expect([answer.statusCode, answer.body]).toEqual([202, '{"runIds":[],"deduplicated":false}']);
  });
});
