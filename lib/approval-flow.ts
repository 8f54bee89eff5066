import { RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
import type { CfnFunction } from 'aws-cdk-lib/aws-lambda';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import {
  DefinitionBody,
  Errors,
  IntegrationPattern,
  JsonPath,
  LogLevel,
  StateMachine,
  StateMachineType,
  TaskInput,
  Timeout,
} from 'aws-cdk-lib/aws-stepfunctions';
import { LambdaInvoke } from 'aws-cdk-lib/aws-stepfunctions-tasks';
import { Construct } from 'constructs';
import { APPROVAL_EXPIRES_AFTER_MS } from '../lambdas/approval/approval.ts';
import { ExpireEnvironment, HoldEnvironment } from '../lambdas/approval/environment.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';
import type { WorkQueue } from './work-queue.ts';

const APPROVAL_FUNCTION_TIMEOUT = seconds(10);

/** One Standard execution per approval, named after it: it holds the task token and keeps the time. */
export class ApprovalFlow extends Construct {
  readonly machine: StateMachine;

  constructor(
    scope: Construct,
    id: string,
    { bundles, runTable, stepQueue }: { bundles: FunctionBundles; runTable: RunTable; stepQueue: WorkQueue },
  ) {
    super(scope, id);
    const hold = new NodeFunction(this, 'Hold', {
      bundles,
      entry: 'approval/hold',
      description: 'Keeps the task token of an approval until it is decided',
      schema: HoldEnvironment,
      environment: { RUN_TABLE: runTable.table.tableName },
      timeout: APPROVAL_FUNCTION_TIMEOUT,
    });
    runTable.allow(hold, ['GetItem'], ['RUN']);
    runTable.allow(hold, ['PutItem'], ['RUN', 'TOKEN']);
    runTable.allow(hold, ['DeleteItem'], ['OUTBOX']);
    const expire = new NodeFunction(this, 'Expire', {
      bundles,
      entry: 'approval/expire',
      description: 'Has an approval looked at whose time is up',
      schema: ExpireEnvironment,
      environment: { STEP_QUEUE_URL: stepQueue.queue.queueUrl },
      timeout: APPROVAL_FUNCTION_TIMEOUT,
    });
    stepQueue.allowSend(expire);

    this.machine = new StateMachine(this, 'Machine', {
      stateMachineType: StateMachineType.STANDARD,
      definitionBody: DefinitionBody.fromChainable(this.#definition(hold, expire)),
      logs: {
        destination: new LogGroup(this, 'MachineLog', {
          retention: RetentionDays.ONE_MONTH,
          removalPolicy: RemovalPolicy.DESTROY,
        }),
        level: LogLevel.ALL,
        // Execution data would carry task tokens into the log.
        includeExecutionData: false,
      },
      tracingEnabled: true,
    });
    this.#acknowledgeWildcards(hold, expire);
  }

  /** AWS leaves no narrower way: log delivery and X-Ray take no resource, and a function's versions are `arn:*`. */
  #acknowledgeWildcards(...invoked: NodeFunction[]): void {
    const versions = invoked.map(
      (each) => `<${Stack.of(this).getLogicalId(each.node.defaultChild as CfnFunction)}.Arn>:*`,
    );
    for (const resource of ['*', ...versions]) {
      Validations.of(this.machine).acknowledge({
        id: `AwsSolutions-IAM5[Resource::${resource}]`,
        reason: 'Log delivery and X-Ray take no resource; invoking a function includes its versions.',
      });
    }
  }

  #definition(hold: NodeFunction, expire: NodeFunction) {
    const expireApproval = LambdaInvoke.jsonPath(this, 'ExpireApproval', {
      lambdaFunction: expire,
      payload: TaskInput.fromObject({ tenant: JsonPath.stringAt('$.tenant'), runId: JsonPath.stringAt('$.runId') }),
      resultPath: JsonPath.DISCARD,
    });
    return LambdaInvoke.jsonPath(this, 'HoldUntilDecided', {
      lambdaFunction: hold,
      integrationPattern: IntegrationPattern.WAIT_FOR_TASK_TOKEN,
      payload: TaskInput.fromObject({
        taskToken: JsonPath.taskToken,
        entryId: JsonPath.stringAt('$.entryId'),
        tenant: JsonPath.stringAt('$.tenant'),
        runId: JsonPath.stringAt('$.runId'),
        approvalId: JsonPath.stringAt('$.approvalId'),
      }),
      taskTimeout: Timeout.duration(seconds(APPROVAL_EXPIRES_AFTER_MS / 1000)),
      resultPath: JsonPath.DISCARD,
    })
      .addRetry({ errors: ['ApprovalClosed'], maxAttempts: 0 })
      .addRetry({ errors: [Errors.TASKS_FAILED], maxAttempts: 6, interval: seconds(2), backoffRate: 3 })
      .addCatch(expireApproval, { errors: [Errors.TIMEOUT], resultPath: JsonPath.DISCARD });
  }

  /** An execution is started by whoever dispatches the promise of one. */
  allowStart(...starters: NodeFunction[]): void {
    for (const starter of starters) starter.allow(['states:StartExecution'], [this.machine.stateMachineArn]);
  }
}
