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
  Timeout,
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
import { WORKER_TIMEOUT_MS } from '../lambdas/run/lease.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import { InlineRole, NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';
import type { TenantSecrets } from './tenant-secrets.ts';
import { WorkQueue } from './work-queue.ts';

/** Slack may take ten seconds, and PagerDuty after it. Claims of digests have the lease times of this timeout. */
const NOTIFY_TIMEOUT = seconds(WORKER_TIMEOUT_MS / 1000);
const EXPIRE_TIMEOUT = seconds(10);
/** The least that Lambda allows. */
const ANNOUNCED_WITHIN = seconds(60);
const PUBLISH_BATCH = 5;
const PUBLISH_CONCURRENCY = 5;

/** The name of the error that wait-for-decision.ts throws. */
const APPROVAL_CLOSED = 'ApprovalClosed';
/**
 * Retries for hours, so that people are notified within a minute after Slack is available again. The number of attempts
 * is bounded because an execution may have 25,000 events, and each attempt adds about five.
 */
const RETRY_FOR_HOURS: RetryProps = {
  errors: [Errors.ALL],
  interval: seconds(2),
  backoffRate: 2,
  maxDelay: seconds(60),
  maxAttempts: 1_000,
};

interface Stage {
  escalationStage: EscalationStage;
  /** How long it lasts, from when the stage before it ends. */
  seconds: string;
  /** When it ends. */
  until: string;
  next: IChainable;
  closed: Succeed;
}

interface ApprovalFlowProps {
  bundles: FunctionBundles;
  runTable: RunTable;
  stepQueue: WorkQueue;
  messagingSecrets: TenantSecrets;
}

/**
 * One Standard execution for each approval, named after it, with the stages notify, remind, escalate and expire. In each
 * stage it waits with a task token for a decision until the next stage is due. The state of the approval is in DynamoDB;
 * the execution only provides the clock. It starts when people are to be reminded: before that, the function that serves
 * its stages is invoked once to post the card. It starts sooner if this fails, or if the reminder is due within minutes.
 */
export class ApprovalFlow extends Construct {
  readonly machine: StateMachine;
  /** Messages for changed approvals (update the card, end the execution of a closed one) and for digests of overdue ones. */
  readonly queue: WorkQueue;
  readonly publishDecision: NodeFunction;
  /** Posts cards, and waits for decisions for the state machine. */
  readonly waitForDecision: NodeFunction;

  constructor(scope: Construct, id: string, props: ApprovalFlowProps) {
    super(scope, id);
    const { bundles, stepQueue } = props;
    this.queue = new WorkQueue(this, 'Queue', { consumerTimeout: NOTIFY_TIMEOUT });
    const waitForDecision = this.#waitForDecision(props);
    this.waitForDecision = waitForDecision;
    const expire = new NodeFunction(this, 'Expire', {
      bundles,
      entry: 'approval/expire',
      description: 'Sends a step message for an expired approval',
      schema: ExpireEnvironment,
      environment: { STEP_QUEUE_URL: stepQueue.queue.queueUrl },
      timeout: EXPIRE_TIMEOUT,
    });
    stepQueue.allowSend(expire);

    const role = new InlineRole(this, 'MachineRole', {
      service: 'states.amazonaws.com',
      description: `${Stack.of(this).stackName}: waits for the decisions on approvals`,
    });
    this.machine = new StateMachine(this, 'Machine', {
      role,
      stateMachineType: StateMachineType.STANDARD,
      definitionBody: DefinitionBody.fromChainable(this.#stages(waitForDecision, expire)),
      logs: {
        destination: new LogGroup(this, 'MachineLog', {
          retention: RetentionDays.ONE_MONTH,
          removalPolicy: RemovalPolicy.DESTROY,
        }),
        level: LogLevel.ALL,
        // Execution data contains task tokens.
        includeExecutionData: false,
      },
      tracingEnabled: true,
    });
    this.#acknowledgeWildcards(role, waitForDecision, expire);
    this.publishDecision = this.#publishDecision(props);
  }

  /** Cards link to the pages of this console. */
  linkTo(consoleUrl: string): void {
    for (const each of [this.waitForDecision, this.publishDecision]) {
      each.addEnvironment('CONSOLE_URL', consoleUrl);
    }
  }

  #waitForDecision({ bundles, runTable, stepQueue, messagingSecrets }: ApprovalFlowProps): NodeFunction {
    // The id stays: running executions name the function, and another id would replace it.
    const waitForDecision = new NodeFunction(this, 'Hold', {
      bundles,
      entry: 'approval/wait-for-decision',
      description: 'Notifies people of an approval and stores its task token',
      schema: WaitForDecisionEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        STEP_QUEUE_URL: stepQueue.queue.queueUrl,
        APPROVAL_QUEUE_URL: this.queue.queue.queueUrl,
        ...messagingSecrets.environment,
      },
      timeout: NOTIFY_TIMEOUT,
    });
    // A repeated announcement would find its outbox entry claimed, and the sweeper starts the execution of one that is late.
    waitForDecision.configureAsyncInvoke({ maxEventAge: ANNOUNCED_WITHIN, retryAttempts: 0 });
    runTable.allow(waitForDecision, ['Query'], ['RUN', 'TENANT']);
    runTable.allow(waitForDecision, ['GetItem'], ['RUN', 'TENANT']);
    runTable.allow(waitForDecision, ['PutItem'], ['RUN', 'TOKEN', 'OUTBOX']);
    runTable.allow(waitForDecision, ['DeleteItem'], ['OUTBOX']);
    this.queue.allowSend(waitForDecision);
    messagingSecrets.readableBy(waitForDecision);
    return waitForDecision;
  }

  /** The only function that may use task tokens. */
  #publishDecision({ bundles, runTable, messagingSecrets }: ApprovalFlowProps): NodeFunction {
    // The id stays, like that of `Hold`: another one would replace the function and its log.
    const publishDecision = new NodeFunction(this, 'Follow', {
      bundles,
      entry: 'approval/publish-decision',
      description: 'Updates cards, posts digests and notices, and ends the executions of closed approvals',
      schema: PublishDecisionEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        ...messagingSecrets.environment,
      },
      timeout: NOTIFY_TIMEOUT,
    });
    this.queue.consumedBy(publishDecision, { batchSize: PUBLISH_BATCH, maxConcurrency: PUBLISH_CONCURRENCY });
    runTable.allow(publishDecision, ['GetItem'], ['RUN', 'TOKEN', 'TENANT', 'DIGEST', 'NOTICE']);
    runTable.allow(publishDecision, ['Query'], ['TENANT', 'OUTBOX', 'RUN']);
    runTable.allow(publishDecision, ['BatchGetItem'], ['RUN']);
    runTable.allow(publishDecision, ['PutItem'], ['DIGEST', 'OUTBOX', 'NOTICE']);
    runTable.allow(publishDecision, ['DeleteItem'], ['OUTBOX']);
    messagingSecrets.readableBy(publishDecision);
    publishDecision.allow(['states:SendTaskSuccess'], [this.machine.stateMachineArn]);
    return publishDecision;
  }

  /** AWS offers nothing narrower: log delivery and X-Ray support no resources, and a function's versions are `arn:*`. */
  #acknowledgeWildcards(role: InlineRole, ...invoked: NodeFunction[]): void {
    const versions = invoked.map(
      (each) => `<${Stack.of(this).getLogicalId(each.node.defaultChild as CfnFunction)}.Arn>:*`,
    );
    for (const resource of ['*', ...versions]) {
      Validations.of(role).acknowledge({
        id: `AwsSolutions-IAM5[Resource::${resource}]`,
        reason: 'Log delivery and X-Ray support no resources; invoking a function includes its versions.',
      });
    }
  }

  #stages(waitForDecision: NodeFunction, expire: NodeFunction): IChainable {
    const expired = LambdaInvoke.jsonPath(this, 'ExpireApproval', {
      lambdaFunction: expire,
      payload: TaskInput.fromObject({ tenant: JsonPath.stringAt('$.tenant'), runId: JsonPath.stringAt('$.runId') }),
      resultPath: JsonPath.DISCARD,
      retryOnServiceExceptions: false,
    }).addRetry(RETRY_FOR_HOURS);
    const closed = new Succeed(this, 'Closed');
    const escalated = this.#stage('Escalate', waitForDecision, {
      escalationStage: 'escalate',
      seconds: '$.escalateSeconds',
      until: '$.expiresAt',
      next: expired,
      closed,
    });
    const reminded = this.#stage('Remind', waitForDecision, {
      escalationStage: 'remind',
      seconds: '$.remindSeconds',
      until: '$.slaAt',
      next: escalated,
      closed,
    });
    return this.#stage('Notify', waitForDecision, {
      escalationStage: 'notify',
      seconds: '$.notifySeconds',
      until: '$.remindAt',
      next: reminded,
      closed,
    });
  }

  /**
   * One task, because AWS bills each state: a decision ends it and the execution, and its timeout is the time of the next
   * stage. If it fails, the stage continues with retries, beside a clock that does not depend on them.
   */
  #stage(name: string, waitForDecision: NodeFunction, stage: Stage): IChainable {
    const task = this.#people(name, waitForDecision, stage, { taskTimeout: Timeout.at(stage.seconds) });
    return task
      .addCatch(stage.closed, { errors: [APPROVAL_CLOSED], resultPath: JsonPath.DISCARD })
      .addCatch(stage.next, { errors: [Errors.TIMEOUT], resultPath: JsonPath.DISCARD })
      .addCatch(this.#again(`${name}Again`, waitForDecision, stage), {
        errors: [Errors.ALL],
        resultPath: JsonPath.DISCARD,
      });
  }

  /** Two branches: a decision and the clock. The first one to finish fails, which stops the other; the error says how to continue. */
  #again(name: string, waitForDecision: NodeFunction, stage: Stage): IChainable {
    const { until, next, closed } = stage;
    const clock = new Wait(this, `${name}Until`, { time: WaitTime.timestampPath(until) }).next(
      new Fail(this, `${name}Over`, {
        error: 'StageOver',
        cause: 'There is no decision; the next escalation stage is due.',
      }),
    );
    return new Parallel(this, name, { resultPath: JsonPath.DISCARD })
      .branch(clock, this.#decision(name, waitForDecision, stage))
      .addCatch(closed, { errors: [APPROVAL_CLOSED], resultPath: JsonPath.DISCARD })
      .addCatch(next, { errors: [Errors.ALL], resultPath: JsonPath.DISCARD });
  }

  /** Notifies people, with retries, and waits for their decision. If all retries fail, the clock still continues. */
  #decision(name: string, waitForDecision: NodeFunction, stage: Stage): IChainable {
    const decided = new Fail(this, `${name}Closed`, { error: APPROVAL_CLOSED, cause: 'The approval is closed.' });
    return this.#people(`${name}People`, waitForDecision, stage, { hasFailedBefore: true })
      .addRetry({ errors: [APPROVAL_CLOSED], maxAttempts: 0 })
      .addRetry(RETRY_FOR_HOURS)
      .addCatch(decided, { errors: [APPROVAL_CLOSED], resultPath: JsonPath.DISCARD })
      .addCatch(new Succeed(this, `${name}Failed`), { errors: [Errors.ALL], resultPath: JsonPath.DISCARD })
      .next(decided);
  }

  #people(
    name: string,
    waitForDecision: NodeFunction,
    { escalationStage }: Stage,
    { taskTimeout, hasFailedBefore = false }: { taskTimeout?: Timeout; hasFailedBefore?: boolean },
  ): LambdaInvoke {
    return LambdaInvoke.jsonPath(this, name, {
      lambdaFunction: waitForDecision,
      integrationPattern: IntegrationPattern.WAIT_FOR_TASK_TOKEN,
      payload: TaskInput.fromObject({
        escalationStage,
        taskToken: JsonPath.taskToken,
        retryCount: JsonPath.numberAt('$$.State.RetryCount'),
        ...(hasFailedBefore && { after: 'failure' }),
        entryId: JsonPath.stringAt('$.entryId'),
        tenant: JsonPath.stringAt('$.tenant'),
        runId: JsonPath.stringAt('$.runId'),
        approvalId: JsonPath.stringAt('$.approvalId'),
      }),
      resultPath: JsonPath.DISCARD,
      retryOnServiceExceptions: false,
      ...(taskTimeout && { taskTimeout }),
    });
  }

  /** Lets a function that requests approvals have their cards posted. */
  allowAnnounce(requester: NodeFunction): void {
    requester.allow(['lambda:InvokeFunction'], [this.waitForDecision.functionArn]);
  }

  /** Lets functions that process outbox entries start executions. */
  allowStart(...starters: NodeFunction[]): void {
    for (const starter of starters) starter.allow(['states:StartExecution'], [this.machine.stateMachineArn]);
  }
}
