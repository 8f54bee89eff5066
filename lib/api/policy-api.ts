import { Construct } from 'constructs';
import { PoliciesEnvironment } from '../../lambdas/api/environment.ts';
import type { FunctionBundles } from '../bundle-functions.ts';
import type { EvidenceBucket } from '../evidence/evidence-bucket.ts';
import { NodeFunction, seconds } from '../node-function.ts';
import type { RunTable } from '../run-table.ts';
import type { StageConfig } from '../stage-config.ts';
import type { CountersignHttpApi } from './http-api.ts';
import type { ListCursors } from './list-cursors.ts';

/** A page of a replay reads ten runs and decides each of their steps again. */
const POLICY_API_TIMEOUT = seconds(20);

interface PolicyApiProps {
  bundles: FunctionBundles;
  config: StageConfig;
  httpApi: CountersignHttpApi;
  cursors: ListCursors;
  runTable: RunTable;
  evidence: EvidenceBucket;
}

/** The routes about policies: read, publish, and replay recorded decisions. */
export class PolicyApi extends Construct {
  constructor(scope: Construct, id: string, { bundles, config, httpApi, cursors, runTable, evidence }: PolicyApiProps) {
    super(scope, id);
    const policies = new NodeFunction(this, 'Policies', {
      bundles,
      entry: 'api/policies/policies',
      description: 'Returns, publishes and replays policies',
      schema: PoliciesEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        ...cursors.environment,
        STAGE_KIND: config.kind,
        EVIDENCE_BUCKET: evidence.bucket.bucketName,
      },
      timeout: POLICY_API_TIMEOUT,
    });
    cursors.allow(policies);
    runTable.allow(policies, ['GetItem', 'Query', 'PutItem'], ['TENANT']);
    runTable.allow(policies, ['PutItem'], ['CHANGE']);
    runTable.allowIndexQuery(policies, 'byTenant');
    runTable.allow(policies, ['BatchGetItem', 'Query'], ['RUN']);
    evidence.allowTexts(policies);
    httpApi.serve('policies', policies);
  }
}
