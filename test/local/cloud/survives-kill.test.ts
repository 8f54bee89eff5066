import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { LocalS3 } from '../../../local/cloud/s3.ts';
import { LocalSqs } from '../../../local/cloud/sqs/sqs.ts';
import { LocalStepFunctions } from '../../../local/cloud/step-functions/step-functions.ts';
import { HostClock } from '../../../local/host/clock.ts';
import { approvalMachine, objectRequest, plainBucket } from './crash-survivors.ts';
import { orders, queues } from './queues.ts';
import { temporaryFolder } from './wire.ts';

const ROUNDS_BEFORE_THE_KILL = 40;

it('every acknowledged message, object and task token survives kill -9', async () => {
  const folder = temporaryFolder();
  const victim = new URL('crash-victim.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [victim, folder.path], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  let done = -1;
  const tokens: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const [what, value = ''] = line.split(' ');
    if (what === 'token') tokens.push(value);
    else done = Number(value);
    if (done === ROUNDS_BEFORE_THE_KILL) child.kill('SIGKILL');
  }
  expect(await exited).toEqual([null, 'SIGKILL']);

  const dataFolder = folder.path;
  const clock = new HostClock(dataFolder);
  const sqs = new LocalSqs({ dataFolder, clock, queues });
  expect(sqs.counts(orders.arn).ready).toBeGreaterThan(done);
  sqs.close();

  const s3 = new LocalS3({ dataFolder, clock, buckets: [plainBucket] });
  for (let n = 0; n <= done; n++) {
    expect((await s3.handle(objectRequest('GET', `k${n}`))).body.toString()).toBe(`v${n}`);
  }
  s3.close();

  const stepFunctions = new LocalStepFunctions({ dataFolder, clock, machines: [approvalMachine(() => {})] });
  for (const taskToken of tokens) await stepFunctions.call('SendTaskSuccess', { taskToken, output: '"yes"' });
  await new Promise((turn) => setImmediate(turn));
  const stateMachineArn = approvalMachine(() => {}).arn;
  const { executions } = await stepFunctions.call('ListExecutions', { stateMachineArn });
  const succeeded = (executions as { status: string }[]).filter(({ status }) => status === 'SUCCEEDED');
  expect(succeeded).toHaveLength(tokens.length);
  expect(tokens.length).toBeGreaterThan(done);
  stepFunctions.stop();
  clock.stop();
  folder.remove();
});
