import { Duration, Stack, Validations } from 'aws-cdk-lib';
import { HttpMethod, type IHttpRouteAuthorizer } from 'aws-cdk-lib/aws-apigatewayv2';
import { HttpLambdaAuthorizer, HttpLambdaResponseType } from 'aws-cdk-lib/aws-apigatewayv2-authorizers';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';
import * as z from 'zod';
import { CONTROL_COMMANDS } from '../lambdas/api/control-commands.ts';
import {
  ApiEnvironment,
  ApprovalsApiEnvironment,
  AuthorizerEnvironment,
  RedriveEnvironment,
} from '../lambdas/api/environment.ts';
import { MoverEnvironment } from '../lambdas/worker/environment.ts';
import type { ApprovalFlow } from './approval-flow.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import type { EvidenceVault } from './evidence-vault.ts';
import type { FrontDoor } from './front-door.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';
import type { WorkQueue } from './work-queue.ts';
import type { Worker } from './worker.ts';

const API_TIMEOUT = seconds(10);
/** A revoked key works at most this long. */
const KEY_VERDICT_KEPT = Duration.minutes(1);

interface ApiProps {
  bundles: FunctionBundles;
  door: FrontDoor;
  runTable: RunTable;
  worker: Worker;
  stepQueue: WorkQueue;
  evidence: EvidenceVault;
  approvals: ApprovalFlow;
}

/** What people and programs ask of runs, behind API keys. */
export class Api extends Construct {
  /** Who a key belongs to, for whatever else is behind it. */
  readonly authorizer: IHttpRouteAuthorizer;
  readonly cursorSecret: Secret;

  constructor(
    scope: Construct,
    id: string,
    { bundles, door, runTable, worker, stepQueue, evidence, approvals }: ApiProps,
  ) {
    super(scope, id);
    const RUN_TABLE = runTable.table.tableName;
    const authorize = new NodeFunction(this, 'Authorize', {
      bundles,
      entry: 'api/authorizer',
      description: 'Says who an API key belongs to',
      schema: AuthorizerEnvironment,
      environment: { RUN_TABLE },
      timeout: API_TIMEOUT,
    });
    runTable.allow(authorize, ['GetItem'], ['APIKEY']);
    const authorizer = new HttpLambdaAuthorizer('ApiKey', authorize, {
      responseTypes: [HttpLambdaResponseType.SIMPLE],
      identitySource: ['$request.header.x-api-key'],
      resultsCacheTtl: KEY_VERDICT_KEPT,
    });

    this.authorizer = authorizer;
    const cursorSecret = this.#cursorSecret();
    this.cursorSecret = cursorSecret;
    const runs = new NodeFunction(this, 'Runs', {
      bundles,
      entry: 'api/runs',
      description: 'Shows runs to those who may see them',
      schema: ApiEnvironment,
      environment: { RUN_TABLE, CURSOR_SECRET_ARN: cursorSecret.secretArn },
      timeout: API_TIMEOUT,
    });
    runs.allow(['secretsmanager:GetSecretValue'], [cursorSecret.secretArn]);
    runTable.allowIndexQuery(runs, 'byTenant', 'byStatus');
    runTable.allow(runs, ['Query'], ['RUN']);
    runTable.allow(runs, ['GetItem'], ['RUN', 'TENANT']);
    runTable.allow(runs, ['BatchGetItem'], ['RUN', 'RECEIPT']);
    for (const path of ['/api/v1/runs', '/api/v1/runs/{id}', '/api/v1/runs/{id}/events']) {
      door.guarded(HttpMethod.GET, path, runs, authorizer);
    }

    const control = new NodeFunction(this, 'Control', {
      bundles,
      entry: 'api/control',
      description: 'Cancels, pauses, resumes, retries, rolls back and signals runs',
      schema: MoverEnvironment,
      environment: worker.moverEnvironment,
      timeout: API_TIMEOUT,
    });
    worker.allowMoves(control);
    for (const command of CONTROL_COMMANDS) {
      door.guarded(HttpMethod.POST, `/api/v1/runs/{id}/${command}`, control, authorizer);
    }

    const decisions = new NodeFunction(this, 'Approvals', {
      bundles,
      entry: 'api/approvals',
      description: 'Shows approvals and takes decisions on them',
      schema: ApprovalsApiEnvironment,
      environment: { ...worker.moverEnvironment, CURSOR_SECRET_ARN: cursorSecret.secretArn },
      timeout: API_TIMEOUT,
    });
    worker.allowMoves(decisions);
    decisions.allow(['secretsmanager:GetSecretValue'], [cursorSecret.secretArn]);
    runTable.allow(decisions, ['Query'], ['TENANT']);
    runTable.allowIndexQuery(decisions, 'pendingApprovals');
    for (const path of ['/api/v1/approvals', '/api/v1/approvals/{id}']) {
      door.guarded(HttpMethod.GET, path, decisions, authorizer);
    }
    for (const path of ['/api/v1/approvals/{id}/decision', '/api/v1/runs/{id}/approve', '/api/v1/runs/{id}/reject']) {
      door.guarded(HttpMethod.POST, path, decisions, authorizer);
    }

    const queues = { steps: stepQueue, evidence: evidence.sealQueue, approvals: approvals.queue };
    const redrive = new NodeFunction(this, 'Redrive', {
      bundles,
      entry: 'api/redrive',
      description: 'Counts dead letters and sends them back',
      schema: RedriveEnvironment,
      environment: {
        DEAD_LETTER_QUEUES: Stack.of(this).toJsonString(
          Object.entries(queues).map(([name, { deadLetters }]) => ({
            name,
            url: deadLetters.queueUrl,
            arn: deadLetters.queueArn,
          })),
        ),
      },
      timeout: API_TIMEOUT,
    });
    for (const queue of Object.values(queues)) queue.allowRedrive(redrive);
    door.guarded(HttpMethod.GET, '/api/v1/dead-letters', redrive, authorizer);
    door.guarded(HttpMethod.POST, '/api/v1/dead-letters/redrive', redrive, authorizer);

    const health = new NodeFunction(this, 'Health', {
      bundles,
      entry: 'api/health',
      description: 'Says that requests reach the stage',
      schema: z.object({}),
      environment: {},
      timeout: API_TIMEOUT,
    });
    door.open(HttpMethod.GET, '/healthz', health, 'It tells nothing but that the stage answers.');
  }

  #cursorSecret(): Secret {
    const secret = new Secret(this, 'CursorSecret', { description: 'Signs the cursors of lists' });
    Validations.of(secret).acknowledge({
      id: 'AwsSolutions-SMG4',
      reason:
        'It only keeps cursors from being made up; replacing it by hand just restarts lists that are being paged.',
    });
    return secret;
  }
}
