import { Stack } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import * as z from 'zod';
import { packageVersion } from '../../bin/version.ts';
import {
  ApprovalsApiEnvironment,
  BulkEnvironment,
  ControlEnvironment,
  McpEnvironment,
  RedriveEnvironment,
  RunsEnvironment,
  SignInEnvironment,
} from '../../lambdas/api/environment.ts';
import { StarterEnvironment } from '../../lambdas/intake/environment.ts';
import type { FunctionBundles } from '../bundle-functions.ts';
import type { EvidenceBucket } from '../evidence/evidence-bucket.ts';
import { traceUrl } from '../evidence/traces.ts';
import type { LiveFeed } from '../live-feed.ts';
import { NodeFunction, seconds } from '../node-function.ts';
import type { RunTable } from '../run-table.ts';
import type { StageConfig } from '../stage-config.ts';
import { RECEIVES_BEFORE_DEAD_LETTER, type WorkQueue } from '../work-queue.ts';
import type { Worker } from '../worker.ts';
import { allowStarts } from './allow-starts.ts';
import { apiFunctionName, type CountersignHttpApi } from './http-api.ts';
import type { ListCursors } from './list-cursors.ts';
import type { SessionTokens } from './session-tokens.ts';

const API_TIMEOUT = seconds(10);
/** Less than the 30 seconds of API Gateway. A call of a tool waits some seconds for its result. */
const MCP_TIMEOUT = seconds(25);
const BULK_TIMEOUT = seconds(25);

interface ApiProps {
  bundles: FunctionBundles;
  config: StageConfig;
  httpApi: CountersignHttpApi;
  cursors: ListCursors;
  sessionTokens: SessionTokens;
  runTable: RunTable;
  worker: Worker;
  evidence: EvidenceBucket;
  /** The queues whose dead letters the API counts and redrives, by the name that it shows. */
  queues: Record<string, WorkQueue>;
  stepQueue: WorkQueue;
  liveFeed: LiveFeed | undefined;
}

/** The routes about runs, approvals and operations. */
export class Api extends Construct {
  /** Links to the console, which is created later. */
  readonly mcp: NodeFunction;

  constructor(scope: Construct, id: string, props: ApiProps) {
    super(scope, id);
    this.#runs(props);
    this.#control(props);
    this.#start(props);
    this.mcp = this.#mcp(props);
    this.#bulk(props);
    this.#approvals(props);
    this.#deadLetters(props);
    this.#health(props);
    this.#docs(props);
  }

  #runs({ bundles, config, httpApi, cursors, runTable, evidence }: ApiProps): void {
    const runs = new NodeFunction(this, 'Runs', {
      bundles,
      entry: 'api/runs/runs',
      description: 'Returns runs, their steps and their events, and the output of commands',
      schema: RunsEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        ...cursors.environment,
        EXPORT_BUCKET: evidence.exports.environment.EXPORT_BUCKET,
        ...traceUrl(config),
      },
      timeout: API_TIMEOUT,
    });
    cursors.allow(runs);
    runTable.allowIndexQuery(runs, 'byTenant', 'byStatus', 'pendingApprovals', 'bySubject');
    runTable.allow(runs, ['Query'], ['RUN']);
    runTable.allow(runs, ['GetItem'], ['RUN', 'TENANT']);
    runTable.allow(runs, ['BatchGetItem'], ['RUN', 'RECEIPT']);
    runTable.allow(runs, ['GetItem', 'Query'], ['OUT']);
    evidence.exports.readableBy(runs, 'output');
    httpApi.serve('runs', runs);
  }

  #control({ bundles, config, httpApi, runTable, worker, sessionTokens, liveFeed }: ApiProps): void {
    const control = new NodeFunction(this, 'Control', {
      bundles,
      entry: 'api/runs/control',
      description:
        'Controls, assigns, resolves and rolls back runs; takes the actions of sessions; redrives outbox entries',
      schema: ControlEnvironment,
      environment: {
        ...worker.runChangerEnvironment,
        STAGE: config.stage,
        ...sessionTokens.environment,
        ...liveFeed?.callback,
      },
      timeout: API_TIMEOUT,
    });
    worker.allowMoves(control);
    sessionTokens.allow(control);
    liveFeed?.allowHints(control);
    runTable.allow(control, ['Query'], ['OUTBOX', 'TENANT', 'NOTICE']);
    // To resolve a run is to settle its receipts.
    runTable.allow(control, ['PutItem'], ['RECEIPT']);
    runTable.allowIndexQuery(control, 'bySubject');
    httpApi.serve('control', control);
  }

  #start({ bundles, config, httpApi, runTable, stepQueue }: ApiProps): void {
    const start = new NodeFunction(this, 'Start', {
      bundles,
      entry: 'api/start/start',
      description: 'Starts, reruns and replays runs',
      schema: StarterEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        STEP_QUEUE_URL: stepQueue.queue.queueUrl,
        STAGE: config.stage,
        STAGE_KIND: config.kind,
      },
      timeout: API_TIMEOUT,
    });
    allowStarts(start, { runTable, stepQueue });
    // Actions are counted by caller and minute.
    runTable.allow(start, ['UpdateItem'], ['RATE']);
    // To find the original of a rerun or replay, and the last run about a ticket.
    runTable.allowIndexQuery(start, 'bySubject');
    runTable.allow(start, ['BatchGetItem'], ['RUN']);
    runTable.allow(start, ['Query'], ['RUN']);
    runTable.allow(start, ['BatchGetItem'], ['RECEIPT']);
    httpApi.serve('start', start);
  }

  /** Proposes actions as Start does for people and programs, and as Control does for sessions. */
  #mcp({ bundles, config, httpApi, runTable, stepQueue, worker, sessionTokens }: ApiProps): NodeFunction {
    const mcp = new NodeFunction(this, 'Mcp', {
      bundles,
      name: apiFunctionName(config, 'mcp'),
      entry: 'api/mcp/mcp',
      description: 'The MCP server: governed tools for any MCP client',
      schema: McpEnvironment,
      environment: {
        ...worker.runChangerEnvironment,
        STAGE: config.stage,
        ...sessionTokens.environment,
        ISSUERS: httpApi.issuers,
        VERSION: packageVersion(),
      },
      timeout: MCP_TIMEOUT,
    });
    // It ends actions only, which never hold a concurrency key.
    worker.allowMoves(mcp, { concurrencyKeys: false });
    allowStarts(mcp, { runTable, stepQueue });
    runTable.allow(mcp, ['UpdateItem'], ['RATE']);
    sessionTokens.allow(mcp);
    httpApi.serve('mcp', mcp);
    return mcp;
  }

  /** Has the permissions of the functions that act on one run: it handles the same requests. */
  #bulk({ bundles, httpApi, cursors, runTable, stepQueue, worker, liveFeed }: ApiProps): void {
    const bulk = new NodeFunction(this, 'Bulk', {
      bundles,
      entry: 'api/bulk/bulk',
      description: 'Previews and executes actions on many runs',
      schema: BulkEnvironment,
      environment: { ...worker.runChangerEnvironment, ...cursors.environment, ...liveFeed?.callback },
      timeout: BULK_TIMEOUT,
    });
    cursors.allow(bulk);
    worker.allowMoves(bulk);
    liveFeed?.allowHints(bulk);
    allowStarts(bulk, { runTable, stepQueue });
    runTable.allowIndexQuery(bulk, 'byTenant', 'bySubject', 'pendingApprovals');
    runTable.allow(bulk, ['GetItem', 'PutItem'], ['BULK']);
    runTable.allow(bulk, ['PutItem'], ['RECEIPT']);
    httpApi.serve('bulk', bulk);
  }

  #approvals({ bundles, httpApi, cursors, runTable, worker }: ApiProps): void {
    const decisions = new NodeFunction(this, 'Approvals', {
      bundles,
      entry: 'api/approvals/approvals',
      description: 'Returns approvals and records decisions',
      schema: ApprovalsApiEnvironment,
      environment: { ...worker.runChangerEnvironment, ...cursors.environment },
      timeout: API_TIMEOUT,
    });
    worker.allowMoves(decisions);
    cursors.allow(decisions);
    runTable.allow(decisions, ['Query'], ['TENANT']);
    runTable.allowIndexQuery(decisions, 'pendingApprovals', 'bySubject');
    httpApi.serve('approvals', decisions);
  }

  #deadLetters({ bundles, httpApi, runTable, queues }: ApiProps): void {
    const redrive = new NodeFunction(this, 'Redrive', {
      bundles,
      entry: 'api/operations/dead-letters',
      description: 'Returns the status of a tenant; lists and redrives its dead letters',
      schema: RedriveEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        DEAD_LETTER_QUEUES: Stack.of(this).toJsonString(
          Object.entries(queues).map(([name, { queue, deadLetters }]) => ({
            name,
            url: deadLetters.queueUrl,
            sourceUrl: queue.queueUrl,
            attempts: RECEIVES_BEFORE_DEAD_LETTER,
          })),
        ),
      },
      timeout: API_TIMEOUT,
    });
    for (const queue of Object.values(queues)) queue.allowRedrive(redrive);
    runTable.allowIndexQuery(redrive, 'byStatus', 'bySubject', 'pendingApprovals');
    runTable.allow(redrive, ['BatchGetItem'], ['RUN']);
    runTable.allow(redrive, ['GetItem'], ['SWEEP']);
    runTable.allow(redrive, ['Query'], ['OUTBOX']);
    httpApi.serve('deadLetters', redrive);
  }

  #health({ bundles, config, httpApi }: ApiProps): void {
    const health = new NodeFunction(this, 'Health', {
      bundles,
      name: apiFunctionName(config, 'health'),
      entry: 'api/operations/health',
      description: 'Responds if requests reach the stage, and says how to sign in',
      schema: SignInEnvironment,
      environment: { ISSUERS: httpApi.issuers },
      timeout: API_TIMEOUT,
    });
    httpApi.serve('health', health);
  }

  #docs({ bundles, httpApi }: ApiProps): void {
    const docs = new NodeFunction(this, 'Docs', {
      bundles,
      entry: 'api/docs/docs',
      description: 'Returns the OpenAPI document and its page',
      schema: z.object({}),
      environment: {},
      timeout: API_TIMEOUT,
    });
    httpApi.serve('docs', docs);
  }
}
