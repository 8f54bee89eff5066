import { RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
import type { CfnFunction } from 'aws-cdk-lib/aws-lambda';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import {
  DefinitionBody,
  Errors,
  Fail,
  type IChainable,
  IntegrationPattern,
  JsonPath,
  LogLevel,
  Parallel,
  type RetryProps,
  StateMachine,
  StateMachineType,
  Succeed,
  TaskInput,
  Wait,
  WaitTime,
} from 'aws-cdk-lib/aws-stepfunctions';
import { LambdaInvoke } from 'aws-cdk-lib/aws-stepfunctions-tasks';
import { Construct } from 'constructs';
import {
  type EscalationStage,
  ExpireEnvironment,
  PublishDecisionEnvironment,
  WaitForDecisionEnvironment,
} from '../lambdas/approval/environment.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';
import type { TenantSecrets } from './tenant-secrets.ts';
import { WorkQueue } from './work-queue.ts';

/** Slack may take its ten seconds, and PagerDuty after it. */
const HOLD_TIMEOUT = seconds(30);
const EXPIRE_TIMEOUT = seconds(10);
const FOLLOW_BATCH = 5;
const FOLLOW_CONCURRENCY = 5;

/** As wait-for-decision.ts names it. */
const APPROVAL_CLOSED = 'ApprovalClosed';
/**
 * Slack may be away for hours: once it is back, people hear within a minute. A rung of days gives up in the end, because
 * an execution may have no more than 25,000 events, and each try makes about five.
 */
const UNTIL_IT_WORKS: RetryProps = {
  errors: [Errors.ALL],
  interval: seconds(2),
  backoffRate: 2,
  maxDelay: seconds(60),
  maxAttempts: 1_000,
};

interface ApprovalFlowProps {
  bundles: FunctionBundles;
  runTable: RunTable;
  stepQueue: WorkQueue;
  messagingSecrets: TenantSecrets;
}

/**
 * One Standard execution per approval, named after it, climbs a ladder: ask, remind, call others, expire. On each rung it
 * waits with a task token for a decision, until the next rung's own time. DynamoDB is the authority, this is the clock.
 */
export class ApprovalFlow extends Construct {
  readonly machine: StateMachine;
  /** Approvals that changed: their cards follow, and the executions of closed ones are woken. */
  readonly queue: WorkQueue;
  readonly follow: NodeFunction;

  constructor(scope: Construct, id: string, props: ApprovalFlowProps) {
    super(scope, id);
    const { bundles, stepQueue } = props;
    this.queue = new WorkQueue(this, 'Queue', { consumerTimeout: HOLD_TIMEOUT });
    const hold = this.#holdFunction(props);
    const expire = new NodeFunction(this, 'Expire', {
      bundles,
      entry: 'approval/expire',
      description: 'Has an approval looked at whose time is up',
      schema: ExpireEnvironment,
      environment: { STEP_QUEUE_URL: stepQueue.queue.queueUrl },
      timeout: EXPIRE_TIMEOUT,
    });
    stepQueue.allowSend(expire);

    this.machine = new StateMachine(this, 'Machine', {
      stateMachineType: StateMachineType.STANDARD,
      definitionBody: DefinitionBody.fromChainable(this.#stages(hold, expire)),
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
    this.follow = this.#followFunction(props);
  }

  #holdFunction({ bundles, runTable, stepQueue, messagingSecrets }: ApprovalFlowProps): NodeFunction {
    const hold = new NodeFunction(this, 'Hold', {
      bundles,
      entry: 'approval/wait-for-decision',
      description: 'Keeps the task token of an approval and tells people about it',
      schema: WaitForDecisionEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        STEP_QUEUE_URL: stepQueue.queue.queueUrl,
        APPROVAL_QUEUE_URL: this.queue.queue.queueUrl,
        ...messagingSecrets.environment,
      },
      timeout: HOLD_TIMEOUT,
    });
    runTable.allow(hold, ['Query'], ['RUN', 'TENANT']);
    runTable.allow(hold, ['GetItem'], ['RUN', 'TENANT']);
    runTable.allow(hold, ['PutItem'], ['RUN', 'TOKEN', 'OUTBOX']);
    runTable.allow(hold, ['DeleteItem'], ['OUTBOX']);
    this.queue.allowSend(hold);
    messagingSecrets.readableBy(hold);
    return hold;
  }

  /** The only function that may answer task tokens. */
  #followFunction({ bundles, runTable, messagingSecrets }: ApprovalFlowProps): NodeFunction {
    const follow = new NodeFunction(this, 'Follow', {
      bundles,
      entry: 'approval/publish-decision',
      description: 'Shows decisions on cards and wakes the executions that wait for them',
      schema: PublishDecisionEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        ...messagingSecrets.environment,
      },
      timeout: HOLD_TIMEOUT,
    });
    this.queue.consumedBy(follow, { batchSize: FOLLOW_BATCH, maxConcurrency: FOLLOW_CONCURRENCY });
    runTable.allow(follow, ['GetItem'], ['RUN', 'TOKEN', 'TENANT']);
    runTable.allow(follow, ['Query'], ['TENANT']);
    runTable.allow(follow, ['DeleteItem'], ['OUTBOX']);
    messagingSecrets.readableBy(follow);
    follow.allow(['states:SendTaskSuccess'], [this.machine.stateMachineArn]);
    return follow;
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

  #stages(hold: NodeFunction, expire: NodeFunction): IChainable {
    const expired = LambdaInvoke.jsonPath(this, 'ExpireApproval', {
      lambdaFunction: expire,
      payload: TaskInput.fromObject({ tenant: JsonPath.stringAt('$.tenant'), runId: JsonPath.stringAt('$.runId') }),
      resultPath: JsonPath.DISCARD,
      retryOnServiceExceptions: false,
    }).addRetry(UNTIL_IT_WORKS);
    const closed = new Succeed(this, 'Closed');
    const escalated = this.#stage('Escalate', hold, {
      escalationStage: 'escalate',
      until: '$.expiresAt',
      next: expired,
      closed,
    });
    const reminded = this.#stage('Remind', hold, {
      escalationStage: 'remind',
      until: '$.slaAt',
      next: escalated,
      closed,
    });
    return this.#stage('Notify', hold, { escalationStage: 'notify', until: '$.remindAt', next: reminded, closed });
  }

  /** A decision and the clock race: a branch that fails stops the other, and by its name the execution ends or climbs. */
  #stage(
    name: string,
    hold: NodeFunction,
    {
      escalationStage,
      until,
      next,
      closed,
    }: { escalationStage: EscalationStage; until: string; next: IChainable; closed: Succeed },
  ): IChainable {
    const clock = new Wait(this, `${name}Until`, { time: WaitTime.timestampPath(until) }).next(
      new Fail(this, `${name}Over`, {
        error: 'StageOver',
        cause: 'Nobody has decided; the next escalation stage is due.',
      }),
    );
    return new Parallel(this, name, { resultPath: JsonPath.DISCARD })
      .branch(clock, this.#decision(name, hold, escalationStage))
      .addCatch(closed, { errors: [APPROVAL_CLOSED], resultPath: JsonPath.DISCARD })
      .addCatch(next, { errors: [Errors.ALL], resultPath: JsonPath.DISCARD });
  }

  /** Tells people and waits for their decision, however often telling them fails. If it cannot be done, the clock goes on. */
  #decision(name: string, hold: NodeFunction, escalationStage: EscalationStage): IChainable {
    const decided = new Fail(this, `${name}Closed`, { error: APPROVAL_CLOSED, cause: 'It is decided, or over.' });
    return LambdaInvoke.jsonPath(this, `${name}People`, {
      lambdaFunction: hold,
      integrationPattern: IntegrationPattern.WAIT_FOR_TASK_TOKEN,
      payload: TaskInput.fromObject({
        escalationStage,
        taskToken: JsonPath.taskToken,
        retryCount: JsonPath.numberAt('$$.State.RetryCount'),
        entryId: JsonPath.stringAt('$.entryId'),
        tenant: JsonPath.stringAt('$.tenant'),
        runId: JsonPath.stringAt('$.runId'),
        approvalId: JsonPath.stringAt('$.approvalId'),
      }),
      resultPath: JsonPath.DISCARD,
      retryOnServiceExceptions: false,
    })
      .addRetry({ errors: [APPROVAL_CLOSED], maxAttempts: 0 })
      .addRetry(UNTIL_IT_WORKS)
      .addCatch(decided, { errors: [APPROVAL_CLOSED], resultPath: JsonPath.DISCARD })
      .addCatch(new Succeed(this, `${name}Unheard`), { errors: [Errors.ALL], resultPath: JsonPath.DISCARD })
      .next(decided);
  }

  /** An execution is started by whoever dispatches the promise of one. */
  allowStart(...starters: NodeFunction[]): void {
    for (const starter of starters) starter.allow(['states:StartExecution'], [this.machine.stateMachineArn]);
  }
}
