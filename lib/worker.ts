import { Stack } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import type * as z from 'zod';
import { WORKER_TIMEOUT_MS } from '../lambdas/run/lease.ts';
import type { RunChangerEnvironment } from '../lambdas/run-changes/environment.ts';
import { WorkerEnvironment } from '../lambdas/worker/environment.ts';
import type { CountersignHttpApi } from './api/http-api.ts';
import type { SessionTokens } from './api/session-tokens.ts';
import type { ApprovalFlow } from './approval-flow.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import type { EvidenceBucket } from './evidence/evidence-bucket.ts';
import type { LiveFeed } from './live-feed.ts';
import { modelArn } from './model-arn.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';
import type { StageConfig } from './stage-config.ts';
import type { TenantSecrets } from './tenant-secrets.ts';
import type { WorkQueue } from './work-queue.ts';

/** Steps mostly wait for their targets, so one invocation processes several runs in parallel. */
const RUNS_PER_WORKER = 5;

interface WorkerProps {
  bundles: FunctionBundles;
  config: StageConfig;
  runTable: RunTable;
  stepQueue: WorkQueue;
  sealQueue: WorkQueue;
  connectionSecrets: TenantSecrets;
  messagingSecrets: TenantSecrets;
  approvals: ApprovalFlow;
  httpApi: CountersignHttpApi;
  evidence: EvidenceBucket;
  liveFeed: LiveFeed | undefined;
  sessionTokens: SessionTokens;
}

/** The function that consumes step messages and makes the writes. */
export class Worker extends Construct {
  /** Environment of the functions that change runs. */
  readonly runChangerEnvironment: z.input<typeof RunChangerEnvironment>;
  readonly step: NodeFunction;
  readonly #props: WorkerProps;

  constructor(scope: Construct, id: string, props: WorkerProps) {
    super(scope, id);
    const { bundles, config, runTable, stepQueue, sealQueue, connectionSecrets, messagingSecrets } = props;
    const { approvals, httpApi, evidence, liveFeed, sessionTokens } = props;
    this.#props = props;
    this.runChangerEnvironment = {
      RUN_TABLE: runTable.table.tableName,
      STEP_QUEUE_URL: stepQueue.queue.queueUrl,
      SEAL_QUEUE_URL: sealQueue.queue.queueUrl,
      APPROVAL_QUEUE_URL: approvals.queue.queue.queueUrl,
      STAGE_FLAGS: JSON.stringify(config.features),
      STAGE: config.stage,
      STAGE_KIND: config.kind,
    };
    this.step = new NodeFunction(this, 'Step', {
      bundles,
      entry: 'worker/step',
      description: 'Processes the steps of runs',
      schema: WorkerEnvironment,
      environment: {
        ...this.runChangerEnvironment,
        APPROVAL_MACHINE_ARN: approvals.machine.stateMachineArn,
        ANNOUNCE_FUNCTION: approvals.waitForDecision.functionName,
        ...connectionSecrets.environment,
        OWN_URL: httpApi.url,
        SIGNING_KEY_ARN: evidence.signing.SIGNING_KEY_ARN,
        SIGNING_ALGORITHM: evidence.signing.SIGNING_ALGORITHM,
        ...liveFeed?.callback,
        ...sessionTokens.environment,
      },
      timeout: seconds(WORKER_TIMEOUT_MS / 1000),
      // Workers send messages to workers while a run continues. Its step limit, deadline and backoff bound the loop.
      sendsToItself: true,
    });
    const { step } = this;
    stepQueue.consumedBy(step, { batchSize: RUNS_PER_WORKER, maxConcurrency: config.workerConcurrency });
    this.allowMoves(step);
    runTable.allow(step, ['Query'], ['TENANT', 'AGENT']);
    runTable.allow(step, ['PutItem'], ['RECEIPT', 'LOCK', 'AGENT']);
    runTable.allow(step, ['UpdateItem'], ['RATE']);
    liveFeed?.allowHints(step);
    sessionTokens.allow(step);
    approvals.allowStart(step);
    approvals.allowAnnounce(step);
    // It signs assignments. Agents accept no other signature of this key, because the payload type is signed, too.
    step.allow(['kms:Sign'], [evidence.signing.SIGNING_KEY_ARN]);
    // Only the worker has credentials for targets.
    connectionSecrets.readableBy(step);
    messagingSecrets.readableBy(step);
    if (config.models.length > 0) {
      step.allow(
        ['bedrock:InvokeModel'],
        config.models.map((model) => modelArn(Stack.of(this), model)),
      );
    }
  }

  /** Lets a function commit changes of runs and send the messages that follow from them. */
  allowMoves(to: NodeFunction, runs: { concurrencyKeys?: boolean } = {}): void {
    const { runTable, stepQueue, sealQueue, approvals } = this.#props;
    runTable.allowCommits(to, runs);
    stepQueue.allowSend(to);
    sealQueue.allowSend(to);
    approvals.queue.allowSend(to);
  }
}
