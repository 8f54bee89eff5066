import { Duration } from 'aws-cdk-lib';
import { Rule, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets';
import { Construct } from 'constructs';
import { SweepEnvironment } from '../lambdas/sweep/environment.ts';
import { allowStarts } from './api/allow-starts.ts';
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

/** Sends a message for every due row once a minute, so that a lost SQS message delays a run but does not stop it. */
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
      description: 'Sends messages for due rows',
      schema: SweepEnvironment,
      environment: {
        STAGE_FLAGS: JSON.stringify(config.features),
        STAGE: config.stage,
        STAGE_KIND: config.kind,
        TENANTS: config.tenants.join(','),
        RUN_TABLE: runTable.table.tableName,
        LIVE_FEED: config.liveFeed ? 'true' : 'false',
        STEP_QUEUE_URL: stepQueue.queue.queueUrl,
        SEAL_QUEUE_URL: sealQueue.queue.queueUrl,
        APPROVAL_QUEUE_URL: approvals.queue.queue.queueUrl,
        APPROVAL_MACHINE_ARN: approvals.machine.stateMachineArn,
      },
      timeout: SWEEP_TIMEOUT,
    });
    this.sweeper = sweeper;
    runTable.allowIndexQuery(sweeper, 'due', 'pendingApprovals', 'byStatus');
    // To count agents and connections for the dashboard.
    runTable.allow(sweeper, ['Query'], ['AGENT']);
    if (config.liveFeed) runTable.allow(sweeper, ['Query'], ['LIVE']);
    runTable.allow(sweeper, ['BatchGetItem', 'PutItem'], ['OUTBOX']);
    runTable.allow(sweeper, ['GetItem', 'PutItem'], ['SWEEP']);
    // To postpone rows for which it has sent a message.
    runTable.allow(sweeper, ['UpdateItem'], ['RUN']);
    // To start the runs of schedules.
    allowStarts(sweeper, { runTable, stepQueue });
    runTable.allow(sweeper, ['GetItem', 'PutItem'], ['SCHEDULE']);
    sealQueue.allowSend(sweeper);
    approvals.queue.allowSend(sweeper);
    approvals.allowStart(sweeper);
    new Rule(this, 'EveryMinute', {
      schedule: Schedule.rate(SWEEP_EVERY),
      // No retries: the next sweep finds the same rows.
      targets: [new LambdaFunction(sweeper, { retryAttempts: 0 })],
    });
  }
}
