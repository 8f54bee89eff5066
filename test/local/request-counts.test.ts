import { afterAll, beforeAll, expect, it } from 'vitest';
import { publish } from './definitions.ts';
import { isTerminal } from './host-client.ts';
import { startTestHost, type TestHost } from './test-host.ts';

/** The webhook's transaction, the worker's load, the claim of the first write, and one commit for each write. */
const DYNAMODB_REQUESTS_MAX = 8;
const WRITES = 5;
let host: TestHost;

beforeAll(async () => {
  host = await startTestHost();
});
afterAll(() => host.stop());

it('a run of five writes costs at most eight DynamoDB requests from its webhook to its terminal commit', async () => {
  const target = { owner: 'octo-org', repo: 'payments', number: '{% trigger.payload.release.id %}' };
  await publish(host, {
    name: 'five-labels',
    event: 'release.published',
    steps: Array.from({ length: WRITES }, (_, index) => ({
      id: `label_${index}`,
      tool: 'github.labels.add',
      with: { ...target, labels: [`label-${index}`] },
    })),
  });
  const release = async (id: number) => {
    const { body } = await host.sendGithub({ action: 'published', release: { id } }, { event: 'release' });
    return host.waitForRun(body.runIds[0] ?? '', isTerminal);
  };
  // The first run warms the functions: a definition is read once, not for every run.
  await release(1);
  await host.idle();
  await host.resetRequests();
  const run = await release(2);

  expect(run.status).toBe('succeeded');
  expect(run.receipts).toHaveLength(WRITES);
  const { functions } = await host.requests();
  const toTerminalCommit = Object.entries(functions).filter(([name]) => /^(Intake|Worker)/.test(name));
  const requests = toTerminalCommit.flatMap(([, services]) => Object.values(services.dynamodb ?? {}));
  const total = requests.reduce((sum, count) => sum + count, 0);
  expect(total, JSON.stringify(toTerminalCommit)).toBeLessThanOrEqual(DYNAMODB_REQUESTS_MAX);
});
