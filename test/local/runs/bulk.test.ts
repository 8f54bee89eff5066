import { afterAll, beforeAll, expect, it } from 'vitest';
import { EXIT } from '../../../bin/commands/failure.ts';
import type { Commit } from '../../../lambdas/run/commit.ts';
import { countersign, startCountersign } from '../../cli/command-line.ts';
import { eventually, inParallel } from '../harness/eventually.ts';
import { ACME_KEY } from '../harness/host-client.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

/** `npm run storm` sets 1,000; the test suite has time for fewer. Not less than three batches of 20. */
const RUNS = Number(process.env.STORM_RUNS ?? 60);
const CONCURRENCY = 16;
const TIMEOUT_MS = 20 * 60_000;
const OPERATOR_KEY = 'local-operator-key';
const HELD = `name: held
steps:
  - { id: answer, tool: wait.external, with: { event: go, timeoutSeconds: 3600 } }
`;

let host: TestHost;
beforeAll(async () => {
  host = await startTestHost();
});
afterAll(() => host.stop());

async function api(method: string, path: string, body?: unknown, key = ACME_KEY): Promise<Record<string, unknown>> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const answer = await host.request(method, `/api/v1${path}`, {
    headers: { 'x-api-key': key },
    ...(body !== undefined && { body: text }),
  });
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer.body as Record<string, unknown>;
}

async function waitingRuns(count: number): Promise<string[]> {
  await api('POST', '/workflows', HELD);
  const started = await inParallel(Array.from({ length: count }), CONCURRENCY, () =>
    api('POST', '/runs', { workflow: { name: 'held' } }),
  );
  const runIds = started.map(({ runId }) => runId as string);
  await host.idle({ withinMs: TIMEOUT_MS });
  return runIds;
}

it(
  `a cancel of ${RUNS} waiting runs shows progress, stops at Ctrl-C, continues, and acts on each run once`,
  async () => {
    const runIds = await waitingRuns(RUNS);
    const connection = ['--url', host.url, '--key', OPERATOR_KEY];
    const beganMs = performance.now();
    const filter = ['--workflow', 'held', '--status', 'waiting_external'];
    const first = startCountersign(['runs', 'bulk', 'cancel', ...filter, '--reason', 'storm', '--yes', ...connection]);
    await eventually(
      'the first batch is done',
      async () => first.stderr.includes(`20 of ${RUNS}: 20 changed`) || undefined,
    );
    first.signal('SIGINT');
    const stopped = await first.ended;
    expect(stopped).toMatchObject({ exitCode: EXIT.interrupted });
    expect(stopped.stdout).toContain(`cancel ${RUNS} runs: waiting_external ${RUNS}`);
    const [, jobId = ''] = /stopped; continue with: npx countersign runs bulk resume (\S+)/.exec(stopped.stderr) ?? [];
    const before = await api('GET', `/runs/bulk/${jobId}`, undefined, OPERATOR_KEY);
    expect(before).toMatchObject({ total: RUNS, finished: false });
    expect(before.processed).toBeLessThan(RUNS);

    // These end by themselves before the job reaches them: the oldest runs come last.
    const open = (await host.allRuns()).filter(({ status }) => status === 'waiting_external');
    const ended = open.slice(-2).map(({ runId }) => runId);
    await Promise.all(ended.map((runId) => api('POST', `/runs/${runId}/signal`, { event: 'go', payload: null })));
    await host.idle();
    const resumed = await countersign(['runs', 'bulk', 'resume', jobId, ...connection]);
    const seconds = (performance.now() - beganMs) / 1000;
    expect(resumed.exitCode).toBe(EXIT.failed);
    expect(resumed.stdout).toContain(`${RUNS} of ${RUNS}: ${RUNS - 2} changed, 2 refused`);
    expect(resumed.stdout).toContain('2 not changed: the run has ended as succeeded; it can no longer be changed');

    const stops = await inParallel(runIds, CONCURRENCY, async (runId) => {
      const { commits } = await host.run(runId);
      return commits.filter(isStopOfOperator).length;
    });
    expect(runIds.map((runId, index) => [runId, stops[index]])).toEqual(
      runIds.map((runId) => [runId, ended.includes(runId) ? 0 : 1]),
    );
    await host.idle({ withinMs: TIMEOUT_MS });
    const statuses = (await host.allRuns()).map(({ status }) => status);
    expect(statuses.filter((status) => status === 'canceled')).toHaveLength(RUNS - 2);
    if (process.env.STORM_RUNS) console.log(`${RUNS} runs canceled in ${seconds.toFixed(1)} s, one Ctrl-C included`);
  },
  TIMEOUT_MS,
);

const isStopOfOperator = ({ events }: Commit): boolean =>
  events.some((event) => event.type === 'run.stop_requested' && event.kind === 'cancel' && event.actor === 'oscar');
