import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SFNClient } from '@aws-sdk/client-sfn';
import { SQSClient } from '@aws-sdk/client-sqs';
import type * as z from 'zod';
import { systemConnections } from '../connectors/connection-ports.ts';
import { AwsEnvironment, StageConnections } from '../connectors/stage-connections.ts';
import { readEnvironment } from '../entry/environment.ts';
import { systemClock, systemEvery, systemIds, systemLog, systemPause } from '../entry/system.ts';
import { secretNames } from '../entry/tenant-secrets.ts';
import { AwsOutbox } from '../outbox/aws-outbox.ts';
import { CachedDefinitions } from '../pipeline/cached-definitions.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { systemPolicy } from '../policy/policy.wiring.ts';
import { DynamoRunStore } from '../run/dynamo/dynamo-run-store.ts';
import { systemExpressions } from '../workflow/expressions/expressions.wiring.ts';
import { MoverEnvironment, WorkerEnvironment } from './environment.ts';
import { SqsStepQueue } from './sqs-step-queue.ts';
import type { Worker } from './worker.ts';

/** A function that never ends a run, or never opens a gate, has no destination for what follows from it. */
type Destinations = Omit<z.infer<typeof MoverEnvironment>, 'SEAL_QUEUE_URL'> & {
  SEAL_QUEUE_URL?: string;
  APPROVAL_MACHINE_ARN?: string;
};

/** What everything that moves runs is built from, made once per function instance. */
export function moverPorts(environment: Destinations = readEnvironment(MoverEnvironment)) {
  const dynamo = new DynamoDBClient();
  const sqs = new SQSClient();
  const stored = new DynamoDefinitions(dynamo, environment.RUN_TABLE);
  return {
    runs: new DynamoRunStore(dynamo, environment.RUN_TABLE, systemPause, systemClock),
    stored,
    definitions: new CachedDefinitions(stored, systemClock.now),
    queue: new SqsStepQueue(sqs, environment.STEP_QUEUE_URL),
    outbox: new AwsOutbox(sqs, new SFNClient(), {
      sealQueueUrl: environment.SEAL_QUEUE_URL,
      approvalQueueUrl: environment.APPROVAL_QUEUE_URL,
      approvalMachineArn: environment.APPROVAL_MACHINE_ARN,
    }),
    clock: systemClock,
    log: systemLog,
  };
}

/** Beside that, what a decision needs: policy is asked again about an edited write. */
export function deciderPorts() {
  const mover = moverPorts();
  return { ...mover, policy: systemPolicy(mover.stored) };
}

export function workerPorts(): Omit<Worker, 'timeLeftMs'> {
  const environment = readEnvironment(WorkerEnvironment);
  const mover = moverPorts(environment);
  return {
    ...mover,
    policy: systemPolicy(mover.stored),
    environment: environment.STAGE_KIND,
    connections: new StageConnections(
      {
        targets: systemConnections(mover.stored, secretNames(environment, 'connections')),
        messaging: systemConnections(mover.stored, secretNames(environment, 'messaging')),
      },
      { ownUrl: environment.OWN_URL, aws: readEnvironment(AwsEnvironment) },
    ),
    expressions: systemExpressions(),
    ids: systemIds,
    random: systemPause.random,
    every: systemEvery,
  };
}
