import { Construct } from 'constructs';
import { CommandsEnvironment, InteractivityEnvironment } from '../lambdas/slack/environment.ts';
import type { CountersignHttpApi } from './api/http-api.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';
import type { StageConfig } from './stage-config.ts';
import type { TenantSecrets } from './tenant-secrets.ts';
import type { WorkQueue } from './work-queue.ts';
import type { Worker } from './worker.ts';

/** Slack shows a warning after 3 s. A decision that takes longer still takes effect. */
const SLACK_TIMEOUT = seconds(10);

interface SlackProps {
  bundles: FunctionBundles;
  config: StageConfig;
  httpApi: CountersignHttpApi;
  runTable: RunTable;
  worker: Worker;
  stepQueue: WorkQueue;
  webhookSecrets: TenantSecrets;
  messagingSecrets: TenantSecrets;
}

/** Slack's callbacks: decisions on cards, the slash command, and the Events API. */
export class Slack extends Construct {
  readonly interactivity: NodeFunction;

  constructor(scope: Construct, id: string, props: SlackProps) {
    super(scope, id);
    const { bundles, config, httpApi, runTable, worker, stepQueue, webhookSecrets, messagingSecrets } = props;
    const RUN_TABLE = runTable.table.tableName;

    const interactivity = new NodeFunction(this, 'Interactivity', {
      bundles,
      entry: 'slack/interactivity',
      description: 'Receives decisions from Slack',
      schema: InteractivityEnvironment,
      environment: {
        ...worker.runChangerEnvironment,
        ...webhookSecrets.environment,
      },
      timeout: SLACK_TIMEOUT,
      reservedConcurrency: config.intakeConcurrency,
    });
    this.interactivity = interactivity;
    worker.allowMoves(interactivity);
    runTable.allow(interactivity, ['Query'], ['TENANT']);
    runTable.allowIndexQuery(interactivity, 'pendingApprovals');
    messagingSecrets.readableBy(interactivity);

    const commands = new NodeFunction(this, 'Commands', {
      bundles,
      entry: 'slack/commands',
      description: 'Responds to the slash command, which also starts runs',
      schema: CommandsEnvironment,
      environment: { RUN_TABLE, STEP_QUEUE_URL: stepQueue.queue.queueUrl, ...webhookSecrets.environment },
      timeout: SLACK_TIMEOUT,
    });
    runTable.allow(commands, ['GetItem', 'Query'], ['TENANT']);
    runTable.allow(commands, ['PutItem'], ['IDEM', 'RUN']);
    stepQueue.allowSend(commands);
    runTable.allow(commands, ['BatchGetItem'], ['RUN']);
    runTable.allowIndexQuery(commands, 'pendingApprovals', 'byTenant', 'byStatus');

    const events = new NodeFunction(this, 'Events', {
      bundles,
      entry: 'slack/events',
      description: 'Receives messages to the app, which start runs or wake them',
      schema: InteractivityEnvironment,
      environment: { ...worker.runChangerEnvironment, ...webhookSecrets.environment },
      timeout: SLACK_TIMEOUT,
    });
    worker.allowMoves(events);
    runTable.allow(events, ['Query'], ['TENANT']);
    runTable.allow(events, ['GetItem', 'PutItem'], ['IDEM', 'NOTICE']);
    messagingSecrets.readableBy(events);

    webhookSecrets.readableBy(interactivity, commands, events);
    httpApi.serve('slackInteractivity', interactivity);
    httpApi.serve('slackCommands', commands);
    httpApi.serve('slackEvents', events);
  }
}
