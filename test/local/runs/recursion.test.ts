import { afterEach, expect, it } from 'vitest';
import type { Assembly } from '../../../local/template/synthesize.ts';
import { publish } from '../harness/definitions.ts';
import { eventually } from '../harness/eventually.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

const HOPS = 60;
/** A time that is over at once: each wait is one message from worker to worker. */
const OVER = '2020-01-01T00:00:00.000Z';

let host: TestHost | undefined;
afterEach(() => host?.stop());

/** The run that goes from worker to worker sixty times, started. */
async function chain(change?: (assembly: Assembly) => Assembly): Promise<{ host: TestHost; runId: string }> {
  const started = await startTestHost({ ...(change && { change }) });
  host = started;
  const steps = Array.from({ length: HOPS }, (_, index) => ({ id: `w${index}`, tool: 'wait', with: { until: OVER } }));
  await publish(started, { name: 'chain', event: 'fork', steps });
  const { body } = await started.sendGithub({}, { event: 'fork' });
  const [runId = ''] = body.runIds;
  return { host: started, runId };
}

const worker = async (at: TestHost) => {
  const [, stats] = Object.entries(await at.functions()).find(([name]) => name.startsWith('WorkerStep')) ?? [];
  if (!stats) throw new Error('there is no worker');
  return stats;
};

it('a run continues from worker to worker more than sixty times without the sweeper', async () => {
  const { host, runId } = await chain();
  expect((await host.waitForRun(runId)).status).toBe('succeeded');
  const { invocations, stoppedLoops } = await worker(host);
  expect({ enough: invocations > HOPS, stoppedLoops }).toEqual({ enough: true, stoppedLoops: 0 });
});

it('without the setting in the template, Lambda stops it at the seventeenth invocation', async () => {
  const { host, runId } = await chain((assembly) => {
    const template = structuredClone(assembly.template);
    for (const { Properties } of Object.values(template.Resources ?? {})) delete Properties?.RecursiveLoop;
    return { ...assembly, template };
  });
  await eventually('Lambda stops the loop', async () => (await worker(host)).stoppedLoops || undefined);
  const { steps, status } = await host.run(runId);
  expect({ status, done: steps.filter((step) => step.status === 'succeeded').length }).toEqual({
    status: 'waiting_external',
    done: 15,
  });
});
