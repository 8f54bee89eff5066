import { afterAll, beforeAll, expect, it } from 'vitest';
import { publish } from './definitions.ts';
import { startTestHost, type TestHost } from './test-host.ts';

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

const pushed = async (number: number, head: string) => {
  const payload = {
    action: 'synchronize',
    pull_request: { number, title: 'Retry refunds', head: { sha: head } },
    repository: { name: 'payments', full_name: 'octo-org/payments' },
  };
  return (await host.sendGithub(payload, { event: 'pull_request' })).body;
};

it('of deliveries about one pull request in a burst only one starts a run; later ones and other requests do', async () => {
  const [first, second] = await Promise.all([pushed(7, 'a1'), pushed(7, 'b2')]);
  expect([first.deduplicated, second.deduplicated].sort()).toEqual([false, true]);
  expect(first.runIds).toHaveLength(1);
  expect(second.runIds).toEqual(first.runIds);
  expect(await pushed(8, 'a1')).toMatchObject({ deduplicated: false });
  await host.advance(5_001);
  const later = await pushed(7, 'c3');
  expect(later).toMatchObject({ deduplicated: false });
  expect(later.runIds).not.toEqual(first.runIds);
});
