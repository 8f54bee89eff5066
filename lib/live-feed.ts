import { Aws, Duration, Stack, Validations } from 'aws-cdk-lib';
import { type CfnApi, WebSocketApi, WebSocketStage } from 'aws-cdk-lib/aws-apigatewayv2';
import { EventSourceMapping, FilterCriteria, FilterRule, StartingPosition } from 'aws-cdk-lib/aws-lambda';
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { LiveEnvironment } from '../lambdas/live/environment.ts';
import type { CountersignHttpApi } from './api/http-api.ts';
import { InvokeSocketIntegration } from './api/invoke-role.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';
import type { StageConfig } from './stage-config.ts';
import type { WorkQueue } from './work-queue.ts';

/** The path of the WebSocket URL. */
const STAGE_NAME = 'live';
/** Messages of clients, before they reach the function: a client sends a few when it connects, then one in 5 minutes. */
const MESSAGES_PER_SECOND_MAX = 500;
const BURST_MAX = 1_000;

/** A batch is sent in some 100 ms. A batch of 100 rows that all have other watchers takes some seconds. */
const FAN_OUT_TIMEOUT = seconds(30);
const ROWS_PER_BATCH = 100;
/** Rows of one partition stay in order, so four batches of different runs can be sent at once. */
const BATCHES_AT_ONCE = 4;
/** Older events are dropped: clients have already read them over the API. */
const ROW_AGE_MAX = Duration.minutes(5);
const ATTEMPTS_AFTER_FIRST = 3;
const LOST_RETENTION = Duration.days(14);

interface LiveFeedProps {
  config: StageConfig;
  bundles: FunctionBundles;
  runTable: RunTable;
  httpApi: CountersignHttpApi;
  /** Its policy also protects the queue of lost batches. */
  stepQueue: WorkQueue;
}

/**
 * Sends new commits and output over a WebSocket to the people who watch. It carries hints: the truth is in the table, and
 * clients read it over the HTTP API when a message is lost. So it can be left out (`liveFeed: false`).
 */
export class LiveFeed extends Construct {
  readonly lost: Queue;
  /** Behind CloudFront, which passes it on. */
  readonly path = `/${STAGE_NAME}`;
  /** For clients. */
  readonly url: string;
  readonly #api: WebSocketApi;
  readonly #runTable: RunTable;
  readonly #environment: { RUN_TABLE: string; LIVE_CALLBACK_URL: string };

  constructor(scope: Construct, id: string, { bundles, config, runTable, httpApi, stepQueue }: LiveFeedProps) {
    super(scope, id);
    this.#runTable = runTable;
    this.#api = new WebSocketApi(this, 'Api', {
      apiName: `${Stack.of(this).stackName}-live`,
      description: 'Live feed: events of runs, and hints for agents',
    });
    const stage = new WebSocketStage(this, 'Stage', {
      webSocketApi: this.#api,
      stageName: STAGE_NAME,
      autoDeploy: true,
      throttle: { rateLimit: MESSAGES_PER_SECOND_MAX, burstLimit: BURST_MAX },
    });
    Validations.of(stage).acknowledge({
      id: 'AwsSolutions-APIG1',
      reason: 'Access logs of WebSocket APIs need a role for the whole account and region. The functions log failures.',
    });
    // `stage.url` would spell the domain, which is another one on the local host.
    const address = `${this.#api.apiEndpoint}/${STAGE_NAME}`;
    this.url = config.domain ? `wss://${config.domain.name}${this.path}` : address;
    this.#environment = { RUN_TABLE: runTable.table.tableName, LIVE_CALLBACK_URL: stage.callbackUrl };
    const { logGroup } = this.#connections(bundles, httpApi);
    this.lost = this.#lost(stepQueue);
    this.#fanOut(bundles, logGroup);
  }

  /** The host name of the WebSocket API itself. */
  get host(): string {
    return `${this.#api.apiId}.execute-api.${Aws.REGION}.${Aws.URL_SUFFIX}`;
  }

  /** For functions that send to connections. */
  get callback(): { LIVE_CALLBACK_URL: string } {
    return { LIVE_CALLBACK_URL: this.#environment.LIVE_CALLBACK_URL };
  }

  /** Lets a function send "sync now" to agents. */
  allowHints(to: NodeFunction): void {
    this.#runTable.allow(to, ['GetItem'], ['LIVE']);
    this.#allowSend(to);
  }

  /** Opens and closes connections, and subscribes them. */
  #connections(bundles: FunctionBundles, httpApi: CountersignHttpApi): NodeFunction {
    const handler = new NodeFunction(this, 'Connections', {
      bundles,
      entry: 'live/connections',
      description: 'Opens, subscribes and closes connections of the live feed',
      schema: LiveEnvironment,
      environment: this.#environment,
      timeout: seconds(10),
    });
    httpApi.knowDomain(handler);
    const runTable = this.#runTable;
    runTable.allow(handler, ['DeleteItem'], ['TICKET']);
    runTable.allow(handler, ['GetItem', 'PutItem', 'DeleteItem'], ['CONN']);
    runTable.allow(handler, ['PutItem', 'DeleteItem'], ['LIVE']);
    runTable.allow(handler, ['GetItem'], ['TENANT', 'AGENT', 'OUT']);
    runTable.allow(handler, ['BatchGetItem'], ['RUN']);
    runTable.allow(handler, ['Query'], ['RUN', 'OUT']);
    this.#allowSend(handler);
    const integration = new InvokeSocketIntegration('Connections', handler, httpApi.invokeRole);
    // There is no `$disconnect`: API Gateway does not invoke it reliably, so the fan-out must forget closed connections anyway.
    for (const routeKey of ['$connect', '$default']) {
      const route = this.#api.addRoute(routeKey, { integration });
      Validations.of(route).acknowledge({
        id: 'AwsSolutions-APIG4',
        reason: 'The function verifies a one-time ticket or the signature of an agent when a connection opens.',
      });
    }
    return handler;
  }

  /** Receives every new commit and every chunk of output, in the order of its run, and the removal of people. */
  #fanOut(bundles: FunctionBundles, logGroup: ILogGroup): void {
    const fanOut = new NodeFunction(this, 'FanOut', {
      bundles,
      entry: 'live/fan-out',
      description: 'Sends new commits and output to the connections that watch them',
      schema: LiveEnvironment,
      environment: this.#environment,
      timeout: FAN_OUT_TIMEOUT,
      logGroup,
    });
    const runTable = this.#runTable;
    runTable.allow(fanOut, ['Query'], ['LIVE']);
    runTable.allow(fanOut, ['DeleteItem'], ['LIVE', 'CONN']);
    runTable.allow(fanOut, ['GetItem'], ['TENANT']);
    this.#allowSend(fanOut, ['POST', 'DELETE']);
    const stream = runTable.stream;
    fanOut.allow(['dynamodb:DescribeStream', 'dynamodb:GetRecords', 'dynamodb:GetShardIterator'], [stream]);
    fanOut.allow(['dynamodb:ListStreams'], ['*']);
    if (!fanOut.role) throw new Error('every function has a role');
    Validations.of(fanOut.role).acknowledge({
      id: 'AwsSolutions-IAM5[Resource::*]',
      reason: 'Lambda requires dynamodb:ListStreams of the role of a consumer, and it has no narrower resource.',
    });
    fanOut.allow(['sqs:SendMessage'], [this.lost.queueArn]);
    const isNew = { eventName: FilterRule.isEqual('INSERT') };
    new EventSourceMapping(this, 'Stream', {
      target: fanOut,
      eventSourceArn: stream,
      startingPosition: StartingPosition.LATEST,
      batchSize: ROWS_PER_BATCH,
      parallelizationFactor: BATCHES_AT_ONCE,
      bisectBatchOnError: true,
      retryAttempts: ATTEMPTS_AFTER_FIRST,
      maxRecordAge: ROW_AGE_MAX,
      reportBatchItemFailures: true,
      onFailure: { bind: () => ({ destination: this.lost.queueArn }) },
      filters: [
        FilterCriteria.filter({ ...isNew, dynamodb: { Keys: { sk: { S: FilterRule.beginsWith('COMMIT#') } } } }),
        FilterCriteria.filter({ ...isNew, dynamodb: { Keys: { pk: { S: FilterRule.beginsWith('OUT#') } } } }),
        FilterCriteria.filter({
          eventName: FilterRule.isEqual('REMOVE'),
          dynamodb: { Keys: { sk: { S: FilterRule.beginsWith('PERSON#') } } },
        }),
      ],
    });
  }

  /** Receives the numbers of batches that could not be sent. They are not sent again: clients read the events over the API. */
  #lost(stepQueue: WorkQueue): Queue {
    const lost = new Queue(this, 'Lost', { retentionPeriod: LOST_RETENTION });
    stepQueue.enforceTlsOf(lost);
    Validations.of(lost).acknowledge({
      id: 'AwsSolutions-SQS3',
      reason: 'This is itself where failed batches go. Nothing consumes it; an alarm watches it.',
    });
    return lost;
  }

  /** `POST` sends to connections, `DELETE` closes them. */
  #allowSend(to: NodeFunction, methods: readonly ('POST' | 'DELETE')[] = ['POST']): void {
    const { role } = to;
    if (!role) throw new Error('every function has a role');
    const stack = Stack.of(this);
    const apiId = stack.getLogicalId(this.#api.node.defaultChild as CfnApi);
    const path = (method: string) => `${STAGE_NAME}/${method}/@connections/*`;
    to.allow(
      ['execute-api:ManageConnections'],
      methods.map((method) =>
        stack.formatArn({ service: 'execute-api', resource: this.#api.apiId, resourceName: path(method) }),
      ),
    );
    for (const method of methods) {
      Validations.of(role).acknowledge({
        id: `AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:<${apiId}>/${path(method)}]`,
        reason: 'Each connection has an id of its own, which does not exist yet. The function finds it in the table.',
      });
    }
  }
}
