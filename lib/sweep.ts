import { Duration } from 'aws-cdk-lib';
import { Rule, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets';
import { Construct } from 'constructs';
import { SweepEnvironment } from '../lambdas/sweep/environment.ts';
import type { ApprovalFlow } from './approval-flow.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';
import type { StageConfig } from './stage-config.ts';
import type { WorkQueue } from './work-queue.ts';

const SWEEP_EVERY = Duration.minutes(1);
const SWEEP_TIMEOUT = seconds(50);

interface SweepProps {
  bundles: FunctionBundles;
  config: StageConfig;
  runTable: RunTable;
  stepQueue: WorkQueue;
  sealQueue: WorkQueue;
  approvals: ApprovalFlow;
}

/** The net under every message: once a minute, whatever is due is sent again. */
export class Sweep extends Construct {
  readonly sweeper: NodeFunction;

  constructor(
    scope: Construct,
    id: string,
    { bundles, config, runTable, stepQueue, sealQueue, approvals }: SweepProps,
  ) {
    super(scope, id);
    const sweeper = new NodeFunction(this, 'Sweeper', {
      bundles,
      entry: 'sweep/sweep',
      description: 'Sends again whatever is due',
      schema: SweepEnvironment,
      environment: {
        STAGE: config.stage,
        TENANTS: config.tenants.join(','),
        RUN_TABLE: runTable.table.tableName,
        STEP_QUEUE_URL: stepQueue.queue.queueUrl,
        SEAL_QUEUE_URL: sealQueue.queue.queueUrl,
        APPROVAL_QUEUE_URL: approvals.queue.queue.queueUrl,
        APPROVAL_MACHINE_ARN: approvals.machine.stateMachineArn,
      },
      timeout: SWEEP_TIMEOUT,
    });
    this.sweeper = sweeper;
    runTable.allowIndexQuery(sweeper, 'due', 'pendingApprovals');
    runTable.allow(sweeper, ['BatchGetItem', 'PutItem'], ['OUTBOX']);
    // To postpone what it has sent.
    runTable.allow(sweeper, ['UpdateItem'], ['RUN']);
    stepQueue.allowSend(sweeper);
    sealQueue.allowSend(sweeper);
    approvals.queue.allowSend(sweeper);
    approvals.allowStart(sweeper);
    new Rule(this, 'EveryMinute', {
      schedule: Schedule.rate(SWEEP_EVERY),
      // A sweep that failed is not repeated: the next one sees the same and more.
      targets: [new LambdaFunction(sweeper, { retryAttempts: 0 })],
    });
  }
}
