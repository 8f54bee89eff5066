import { afterAll, beforeAll, expect, it } from 'vitest';
import { incident } from '../harness/deliveries.ts';
import { isTerminal } from '../harness/host-client.ts';
import { labelWrites, triageWrites } from '../harness/seen-writes.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

let host: TestHost;

beforeAll(async () => {
  host = await startTestHost();
  await host.trustAutomations();
});
afterAll(() => host.stop());

it('with all messages of intake and worker lost, the sweeper finishes every run and seals its evidence', async () => {
  for (const sender of ['IntakeGithub', 'IntakeServicenow', 'WorkerStep']) {
    await host.fault({ function: sender, service: 'sqs', operation: 'SendMessage', kind: 'error', times: 'always' });
  }
  const filed = incident('without a message');
  const runIds = [await host.fileIncident(filed), await host.openIssue(1)];

  // Nothing happens by itself: no message, no work.
  await host.idle();
  for (const runId of runIds) expect((await host.run(runId)).status).toBe('queued');

  const runs = await host.letTimePassUntil(runIds, (run) => isTerminal(run) && run.evidence !== null);
  expect(runs.map(({ status }) => status)).toEqual(['succeeded', 'succeeded']);
  const calls = await host.calls();
  expect(triageWrites(calls, filed)).toEqual({ assign: 1, note: 1, post: 1 });
  expect(labelWrites(calls, 1)).toBe(1);
  expect((await host.faults()).every(({ hits }) => hits > 0)).toBe(true);
});
