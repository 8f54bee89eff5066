import { Construct } from 'constructs';
import { IntakeEnvironment } from '../lambdas/intake/environment.ts';
import type { CountersignHttpApi } from './api/http-api.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';
import type { StageConfig } from './stage-config.ts';
import type { TenantSecrets } from './tenant-secrets.ts';
import type { WorkQueue } from './work-queue.ts';

/** Senders time out after 10 s. */
const INTAKE_TIMEOUT = seconds(10);

interface IntakeProps {
  bundles: FunctionBundles;
  config: StageConfig;
  httpApi: CountersignHttpApi;
  runTable: RunTable;
  stepQueue: WorkQueue;
  webhookSecrets: TenantSecrets;
}

/** Signed webhooks become runs: one function per source, each with its own route. */
export class Intake extends Construct {
  readonly github: NodeFunction;
  readonly servicenow: NodeFunction;
  readonly generic: NodeFunction;

  constructor(scope: Construct, id: string, props: IntakeProps) {
    super(scope, id);
    this.github = this.#source('Github', 'github', 'Turns signed GitHub webhooks into runs', props);
    this.generic = this.#source(
      'Generic',
      'generic',
      "Turns signed webhooks of a tenant's own sources into runs",
      props,
    );
    this.servicenow = this.#source('Servicenow', 'servicenow', 'Turns signed ServiceNow webhooks into runs', props);
  }

  #source(
    id: string,
    source: 'github' | 'servicenow' | 'generic',
    description: string,
    props: IntakeProps,
  ): NodeFunction {
    const { bundles, config, httpApi, runTable, stepQueue, webhookSecrets } = props;
    const intake = new NodeFunction(this, id, {
      bundles,
      entry: `intake/${source}`,
      description,
      schema: IntakeEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        STEP_QUEUE_URL: stepQueue.queue.queueUrl,
        ...webhookSecrets.environment,
      },
      timeout: INTAKE_TIMEOUT,
      reservedConcurrency: config.intakeConcurrency,
    });
    runTable.allow(intake, ['PutItem'], ['IDEM', 'RUN']);
    runTable.allow(intake, ['Query'], ['TENANT']);
    stepQueue.allowSend(intake);
    webhookSecrets.readableBy(intake);
    httpApi.serve(source, intake);
    return intake;
  }
}
