import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { S3Client } from '@aws-sdk/client-s3';
import { toolNames } from '../../connectors/registry.ts';
import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { stageSecret } from '../../entry/secrets-stage-secret.ts';
import { systemClock, systemIds, systemLog, systemPause } from '../../entry/system.ts';
import { S3EvidenceStore } from '../../evidence/s3-evidence-store.ts';
import { DynamoDefinitions } from '../../pipeline/dynamo-definitions.ts';
import { TextArchive } from '../../pipeline/text-archive.ts';
import { wirePolicy, wirePolicyEngines } from '../../policy/policy.wiring.ts';
import { readShippedPolicies } from '../../policy/shipped-policies.ts';
import { DynamoRunStore } from '../../run/dynamo/dynamo-run-store.ts';
import { PoliciesEnvironment } from '../environment.ts';
import { handlePolicies, type PoliciesPorts } from './policies.ts';

const environment = readEnvironment(PoliciesEnvironment);
const dynamo = new DynamoDBClient();
const engines = wirePolicyEngines();
const definitions = new DynamoDefinitions(dynamo, environment.RUN_TABLE);

const api: PoliciesPorts = {
  runs: new DynamoRunStore(dynamo, environment.RUN_TABLE, systemPause, systemClock),
  definitions,
  secondOwner: environment.STAGE_KIND === 'prod',
  clock: systemClock,
  ids: systemIds,
  engines,
  tools: toolNames(),
  shipped: readShippedPolicies,
  texts: new TextArchive({
    store: new S3EvidenceStore(new S3Client(), environment.EVIDENCE_BUCKET, systemPause),
    definitions,
    shipped: readShippedPolicies,
    log: systemLog,
  }),
  // A recorded decision can name a tool that has been removed since.
  policyOf: (policies) => wirePolicy({ policies: async () => policies }, { isTool: () => true, engines }),
  cursorSecret: stageSecret(environment.CURSOR_SECRET_ARN),
};

export const handler = httpHandler((event) => handlePolicies(api, event));
