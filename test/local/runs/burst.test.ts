import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { publish } from '../harness/definitions.ts';
import { isTerminal } from '../harness/host-client.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

let host: TestHost;

beforeAll(async () => {
  host = await startTestHost();
  await publish(host, {
    name: 'welcome-pull-request',
    event: 'pull_request.synchronize',
    steps: [{ id: 'hello', tool: 'transform', with: { hello: '{% trigger.number %}' } }],
  });
});
afterAll(() => host.stop());

const pushed = async (number: number, head: string, besides: object = {}) => {
  const payload = {
    action: 'synchronize',
    number,
    pull_request: { number, title: 'Retry refunds', head: { sha: head } },
    repository: { name: 'payments', full_name: 'octo-org/payments' },
    ...besides,
  };
  return (await host.sendGithub(JSON.stringify(payload), { event: 'pull_request' })).body;
};

it('the same push under two delivery ids starts one run; two pushes within seconds start two', async () => {
  const [first, second] = await Promise.all([pushed(7, 'a1'), pushed(7, 'a1', { installation: { id: 5 } })]);
  expect([first.deduplicated, second.deduplicated].sort()).toEqual([false, true]);
  expect(first.runIds).toHaveLength(1);
  expect(second.runIds).toEqual(first.runIds);
  const another = await pushed(7, 'b2');
  expect(another).toMatchObject({ deduplicated: false });
  expect(another.runIds).not.toEqual(first.runIds);
});

it('a signed body that is sent again much later with another id starts nothing', async () => {
  const first = await pushed(8, 'a1');
  await host.advance(3_600_000);
  expect(await pushed(8, 'a1')).toEqual({ runIds: first.runIds, deduplicated: true });
});

it('a push of 2,048 commits is stored completely', async () => {
  await publish(host, {
    name: 'large-push',
    event: 'push',
    steps: [
      {
        id: 'count',
        tool: 'transform',
        with: { commits: '{% $count(trigger.payload.commits) = 2048 ? 1 : $error("lost") %}' },
      },
    ],
  });
  const sha = () => randomBytes(20).toString('hex');
  const commits = Array.from({ length: 2_048 }, () => ({ id: sha(), tree_id: sha(), message: 'Fix "it"'.repeat(40) }));
  const payload = {
    ref: 'refs/heads/main',
    before: sha(),
    after: sha(),
    commits,
    pusher: { name: 'mona' },
    repository: { name: 'payments', full_name: 'octo-org/payments' },
  };
  expect(JSON.stringify(payload).length).toBeGreaterThan(1024 * 1024);
  const { body } = await host.sendGithub(payload, { event: 'push' });
  const [runId = ''] = body.runIds;
  const run = await host.waitForRun(runId, isTerminal);
  expect(run.status).toBe('succeeded');
});
