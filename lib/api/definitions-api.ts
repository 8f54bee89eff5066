import { Construct } from 'constructs';
import { DefinitionsEnvironment } from '../../lambdas/api/environment.ts';
import { PlanEnvironment } from '../../lambdas/plan/environment.ts';
import type { FunctionBundles } from '../bundle-functions.ts';
import { NodeFunction, seconds } from '../node-function.ts';
import type { RunTable } from '../run-table.ts';
import type { StageConfig } from '../stage-config.ts';
import { TenantSecrets } from '../tenant-secrets.ts';
import type { WorkQueue } from '../work-queue.ts';
import { allowStarts } from './allow-starts.ts';
import type { CountersignHttpApi } from './http-api.ts';
import type { ListCursors } from './list-cursors.ts';

const DEFINITIONS_TIMEOUT = seconds(10);
/** The default of `approverCoolDownHours`: for this time a widened right to approve does not count. */
const COOL_DOWN_HOURS = { prod: 24, staging: 0, dev: 0 };
/** A plan reads its targets one after the other, and API Gateway waits at most 30 s for a response. */
const PLAN_TIMEOUT = seconds(29);

interface DefinitionsApiProps {
  bundles: FunctionBundles;
  config: StageConfig;
  httpApi: CountersignHttpApi;
  cursors: ListCursors;
  runTable: RunTable;
  stepQueue: WorkQueue;
}

/** The routes about definitions: workflows and their plans, automations, people, and the history of changes. */
export class DefinitionsApi extends Construct {
  /** Credentials that plans read targets with. */
  readonly planSecrets: TenantSecrets;

  constructor(
    scope: Construct,
    id: string,
    { bundles, config, httpApi, cursors, runTable, stepQueue }: DefinitionsApiProps,
  ) {
    super(scope, id);
    const RUN_TABLE = runTable.table.tableName;
    const definitions = new NodeFunction(this, 'Definitions', {
      bundles,
      entry: 'api/definitions/definitions',
      description: 'Changes and returns workflows, automations and people',
      schema: DefinitionsEnvironment,
      environment: {
        RUN_TABLE,
        ...cursors.environment,
        STAGE_KIND: config.kind,
        APPROVER_COOL_DOWN_HOURS: String(config.approverCoolDownHours ?? COOL_DOWN_HOURS[config.kind]),
      },
      timeout: DEFINITIONS_TIMEOUT,
    });
    cursors.allow(definitions);
    runTable.allow(definitions, ['GetItem', 'DeleteItem', 'ConditionCheckItem'], ['TENANT']);
    runTable.allow(definitions, ['BatchGetItem', 'PutItem', 'DeleteItem'], ['IDENTITY']);
    runTable.allow(definitions, ['Query', 'PutItem'], ['TENANT', 'CHANGE']);
    runTable.allow(definitions, ['GetItem', 'BatchGetItem', 'PutItem', 'DeleteItem'], ['SCHEDULE']);
    // Publishing and plans warn about commands that no agent could run.
    runTable.allow(definitions, ['Query'], ['AGENT']);
    httpApi.serve('definitions', definitions);

    // Plans read targets with their own credentials, which the operator creates without write permissions.
    this.planSecrets = new TenantSecrets(this, 'PlanSecrets', {
      ...config,
      purpose: 'plan-connections',
      description: 'Read-only credentials for plans, by connection: {"servicenow": {...}, "github": {...}, ...}',
      generatedEntry: 'unused',
    });
    const plan = new NodeFunction(this, 'Plan', {
      bundles,
      entry: 'api/definitions/plan',
      description: 'Returns the plan of a run',
      schema: PlanEnvironment,
      environment: {
        RUN_TABLE,
        STEP_QUEUE_URL: stepQueue.queue.queueUrl,
        ...this.planSecrets.environment,
        STAGE_KIND: config.kind,
      },
      timeout: PLAN_TIMEOUT,
    });
    this.planSecrets.readableBy(plan);
    // To start the run of a saved plan.
    allowStarts(plan, { runTable, stepQueue });
    runTable.allow(plan, ['GetItem', 'PutItem'], ['PLAN']);
    runTable.allow(plan, ['BatchGetItem'], ['RECEIPT']);
    runTable.allow(plan, ['Query'], ['AGENT']);
    httpApi.serve('plan', plan);
  }
}
