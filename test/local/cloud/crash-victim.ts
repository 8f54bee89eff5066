/** A process that is killed while it works: after each acknowledged change it writes a line that names it. */

import { LocalS3 } from '../../../local/cloud/s3.ts';
import { LocalSqs } from '../../../local/cloud/sqs/sqs.ts';
import { LocalStepFunctions } from '../../../local/cloud/step-functions/step-functions.ts';
import { HostClock } from '../../../local/host/clock.ts';
import { approvalMachine, objectRequest, plainBucket } from './crash-survivors.ts';
import { orders, queues } from './queues.ts';

const [dataFolder = ''] = process.argv.slice(2);
const clock = new HostClock(dataFolder);
const sqs = new LocalSqs({ dataFolder, clock, queues });
const s3 = new LocalS3({ dataFolder, clock, buckets: [plainBucket] });
const machine = approvalMachine((token) => process.stdout.write(`token ${token}\n`));
const stepFunctions = new LocalStepFunctions({ dataFolder, clock, machines: [machine] });

for (let n = 0; ; n++) {
  await sqs.call('SendMessage', { QueueUrl: orders.url, MessageBody: `m${n}` });
  await s3.handle(objectRequest('PUT', `k${n}`, `v${n}`));
  await stepFunctions.call('StartExecution', { stateMachineArn: machine.arn, name: `e${n}`, input: '{}' });
  process.stdout.write(`done ${n}\n`);
  await new Promise((turn) => setImmediate(turn));
}
