import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { SIGNED_BODY_MAX_BYTES } from '../../lambdas/entry/body-limits.ts';
import { receiveWebhook } from '../../lambdas/intake/webhook.ts';
import { automation, GITHUB, openIntake, webhook } from './intake-world.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
let intake: ReturnType<typeof openIntake>;
beforeEach(() => {
  intake = openIntake();
});

const repository = { full_name: 'octo-org/payments' };
const labeled = (name: string, more: object = {}) => ({
  action: 'labeled',
  number: 7,
  pull_request: { number: 7, title: 'Faster checkout' },
  label: { name },
  repository,
  ...more,
});
const comment = (id: number) => ({
  action: 'created',
  pull_request: { number: 7, title: 'Faster checkout' },
  comment: { id },
  repository,
});
const save = (name: string, event: string, filter?: string) =>
  intake.definitions.saveAutomation('acme', automation(name, { event, ...(filter && { filter }) }));

interface Sent {
  id: string;
  event?: string;
  hook?: string;
}
async function send(body: object | string, { id, event = 'pull_request', hook }: Sent) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const headers = { 'x-github-event': event, 'x-github-delivery': id, ...(hook && { 'x-github-hook-id': hook }) };
  const answer = await receiveWebhook(intake, GITHUB, webhook(text, { headers }));
  return JSON.parse(answer.body ?? '') as { runIds: string[]; deduplicated: boolean };
}
const started = async () =>
  (await intake.runs.listRuns('acme', { limit: 100 })).items.map((run) => run.automation).sort();
const payloadOf = async (runId = '') => (await intake.runs.load('acme', runId))?.trigger.payload as never;

describe('events about one pull request within five seconds', () => {
  it('start their own automations: two labels are two events', async () => {
    await save('on-bug', 'pull_request.labeled', "{% trigger.payload.label.name = 'bug' %}");
    await save('on-urgent', 'pull_request.labeled', "{% trigger.payload.label.name = 'urgent' %}");
    await send(labeled('bug'), { id: 'd-1' });
    await send(labeled('urgent'), { id: 'd-2' });
    expect(await started()).toEqual(['on-bug', 'on-urgent']);
  });

  it('start an automation once within five seconds, also an automation that only a later hook started', async () => {
    await save('on-label', 'pull_request.labeled');
    await save('on-app', 'pull_request.labeled', '{% $exists(trigger.payload.installation) %}');
    const byApp = labeled('bug', { installation: { id: 1 } });
    await send(labeled('bug'), { id: 'd-1', hook: '1' });
    intake.clock.advance(3_000);
    await send(byApp, { id: 'd-1', hook: '2' });
    expect(await started()).toEqual(['on-app', 'on-label']);
    // The first event is six seconds old, that of the app three.
    intake.clock.advance(3_000);
    await send(JSON.stringify(byApp, null, 1), { id: 'd-2', hook: '2' });
    expect((await started()).filter((name) => name === 'on-app')).toEqual(['on-app']);
  });

  it('start an automation once per event: two labels, two review comments', async () => {
    await save('on-label', 'pull_request.labeled');
    await save('on-comment', 'pull_request_review_comment.created');
    await send(labeled('bug'), { id: 'd-1' });
    await send(labeled('urgent'), { id: 'd-2' });
    await send(comment(1), { id: 'd-3', event: 'pull_request_review_comment' });
    await send(comment(2), { id: 'd-4', event: 'pull_request_review_comment' });
    expect(await started()).toEqual(['on-comment', 'on-comment', 'on-label', 'on-label']);
  });

  it('that are the same event under another id start no further runs, from any hook', async () => {
    await save('on-label', 'pull_request.labeled');
    const first = await send(labeled('bug'), { id: 'd-1', hook: '1' });
    intake.clock.advance(4_999);
    const again = await send(labeled('bug', { installation: { id: 5 } }), { id: 'd-2', hook: '2' });
    expect(again).toEqual({ runIds: first.runIds, deduplicated: true });
    expect(await started()).toEqual(['on-label']);
  });
});

describe('a signed body under another delivery id', () => {
  it('starts no run while the delivery has its record, for any hook and event in its headers', async () => {
    await save('on-label', 'pull_request.labeled');
    const first = await send(labeled('bug'), { id: 'd-1', hook: '1' });
    for (const [days, sent] of [
      [0, { id: 'd-2', hook: '1' }],
      [1, { id: 'd-3', hook: '2' }],
      [6, { id: 'd-4' }],
    ] as const) {
      intake.clock.advance(days * DAY_MS);
      expect(await send(labeled('bug'), sent)).toEqual({ runIds: first.runIds, deduplicated: true });
    }
    expect(await started()).toEqual(['on-label']);
    expect(intake.log.messages('warn')).toContain('a signed body was sent again; no run is started');
  });

  it('cannot be sent as another event', async () => {
    await save('on-edit', 'pull_request.edited');
    const review = { ...labeled('bug'), action: 'edited', label: undefined, review: { id: 1 } };
    await expect(send(review, { id: 'd-1', event: 'pull_request' })).rejects.toMatchObject({ status: 400 });
    expect(await started()).toEqual([]);
  });

  it('starts no run either if a second hook delivered it first', async () => {
    await save('on-label', 'pull_request.labeled');
    await send(labeled('bug'), { id: 'd-1', hook: '1' });
    await send(labeled('bug', { installation: { id: 5 } }), { id: 'd-1', hook: '2' });
    intake.clock.advance(DAY_MS);
    const replayed = await send(labeled('bug', { installation: { id: 5 } }), { id: 'd-9', hook: '2' });
    expect(replayed.deduplicated).toBe(true);
    expect(await started()).toEqual(['on-label']);
  });
});

describe('one event through several hooks, under one delivery id', () => {
  const issue = (more: object = {}) => ({ action: 'opened', issue: { number: 7, title: 'x' }, repository, ...more });
  const issues = (id: string, hook?: string) => ({ id, event: 'issues', ...(hook && { hook }) });

  it('is not a conflict and starts an automation once', async () => {
    await save('on-issue', 'issues.opened');
    const first = await send(issue(), issues('d-1', '1'));
    const second = await send(issue({ installation: { id: 5 } }), issues('d-1', '2'));
    expect(second).toEqual({ runIds: first.runIds, deduplicated: true });
    expect(await started()).toEqual(['on-issue']);
  });

  it('starts an automation that only the second body matches, once, also when it is sent again or by a third hook', async () => {
    await save('on-issue', 'issues.opened');
    await save('on-app', 'issues.opened', '{% trigger.payload.installation.id = 5 %}');
    const first = await send(issue(), issues('d-1', '1'));
    const app = await send(issue({ installation: { id: 5 } }), issues('d-1', '2'));
    expect(app).toEqual({ runIds: [...first.runIds, expect.any(String)], deduplicated: false });
    expect(await send(issue({ installation: { id: 5 } }), issues('d-1', '2'))).toEqual({ ...app, deduplicated: true });
    await send(issue({ installation: { id: 5 }, enterprise: { id: 1 } }), issues('d-1', '3'));
    expect(await started()).toEqual(['on-app', 'on-issue']);
  });

  it('starts each automation once when all hooks deliver at once', async () => {
    await save('on-issue', 'issues.opened');
    await save('on-app', 'issues.opened', '{% $exists(trigger.payload.installation) %}');
    const bodies = [issue(), ...[1, 2, 3, 4].map((id) => issue({ installation: { id } }))];
    await Promise.all(bodies.map((body, hook) => send(body, issues('d-1', String(hook)))));
    expect(await started()).toEqual(['on-app', 'on-issue']);
  });

  it('is a conflict if the same hook, or an unknown hook, sends another body', async () => {
    await save('on-issue', 'issues.opened');
    await send(issue(), issues('d-1', '1'));
    await expect(send(issue({ changed: 1 }), issues('d-1', '1'))).rejects.toMatchObject({ status: 409 });
    await expect(send(issue({ changed: 1 }), issues('d-1'))).rejects.toMatchObject({ status: 409 });
    expect(await started()).toEqual(['on-issue']);
  });
});

describe('a delivery as a form', () => {
  const form = (body: object) => `payload=${encodeURIComponent(JSON.stringify(body)).replaceAll('%20', '+')}`;

  it('is read like JSON', async () => {
    await save('on-label', 'pull_request.labeled');
    const { runIds } = await send(form(labeled('needs triage + 1')), { id: 'd-1' });
    expect(await payloadOf(runIds[0])).toEqual(labeled('needs triage + 1'));
  });

  it('is recognized by its bytes, not its content type: text inside signed JSON never becomes a payload', async () => {
    await save('on-label', 'pull_request.labeled');
    const forged = labeled(`x&payload=${encodeURIComponent(JSON.stringify(labeled('forged')))}`);
    const { runIds } = await send(forged, { id: 'd-1' });
    expect(await payloadOf(runIds[0])).toEqual(forged);
  });
});

describe('a large delivery', () => {
  const sha = () => randomBytes(20).toString('hex');
  const push = (commits: number, message = 'Fix the checkout') => ({
    ref: 'refs/heads/main',
    before: sha(),
    after: sha(),
    pusher: { name: 'octocat' },
    repository,
    commits: Array.from({ length: commits }, () => {
      const id = sha();
      return {
        id,
        tree_id: sha(),
        message,
        timestamp: '2026-11-16T10:00:00Z',
        url: `https://github.com/octo-org/payments/commit/${id}`,
        author: { name: 'Octo Cat', email: 'octocat@example.com', username: 'octocat' },
        committer: { name: 'GitHub', email: 'noreply@github.com', username: 'web-flow' },
        added: [],
        removed: [],
        modified: [`src/${id.slice(0, 8)}.ts`],
      };
    }),
  });

  it('is stored in full: a push of 2,048 commits', async () => {
    await save('on-push', 'push');
    const body = push(2_048);
    expect(JSON.stringify(body).length).toBeGreaterThan(1024 * 1024 * 0.9);
    const { runIds } = await send(body, { id: 'd-1', event: 'push' });
    expect(await payloadOf(runIds[0])).toEqual(body);
  });

  it('that fits into no row is stored with a digest of its largest member', async () => {
    await save('on-push', 'push', '{% $count(trigger.payload.commits) = 20 %}');
    const body = push(20, randomBytes(40_000).toString('base64'));
    const random = {
      ...body,
      commits: body.commits.map((each) => ({ ...each, message: randomBytes(40_000).toString('base64') })),
    };
    const { runIds } = await send(random, { id: 'd-1', event: 'push' });
    const { commits, ...rest } = random;
    expect(await payloadOf(runIds[0])).toEqual({
      ...rest,
      commits: {
        omitted: true,
        bytes: Buffer.byteLength(JSON.stringify(commits)),
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        items: 20,
      },
    });
  });

  it('that starts many runs fits into one transaction', async () => {
    for (let each = 0; each < 32; each += 1) await save(`on-push-${each}`, 'push');
    const body = { ...push(1), note: randomBytes(200_000).toString('base64') };
    const { runIds } = await send(body, { id: 'd-1', event: 'push' });
    expect(runIds).toHaveLength(32);
    expect(await payloadOf(runIds[31])).toMatchObject({ ref: 'refs/heads/main', note: { omitted: true } });
  });

  it('above the limit of Lambda is refused before it is read', async () => {
    const body = JSON.stringify({ x: 'x'.repeat(SIGNED_BODY_MAX_BYTES) });
    await expect(send(body, { id: 'd-1' })).rejects.toMatchObject({ status: 413 });
    expect(SIGNED_BODY_MAX_BYTES).toBeGreaterThan(2 * 1024 * 1024);
  });
});
