import { DynamoAgentRegistry } from '../agents/dynamo-agent-registry.ts';
import { StageConnections } from '../connectors/connections.ts';
import { systemConnections } from '../connectors/secrets-connections.ts';
import { AwsEnvironment, readEnvironment } from '../entry/environment.ts';
import { stageSecret } from '../entry/secrets-stage-secret.ts';
import { systemEvery, systemIds, systemPause } from '../entry/system.ts';
import { secretNames } from '../entry/tenant-secrets.ts';
import { KmsSignRequest } from '../evidence/signing/kms-sign-request.ts';
import { wireHints } from '../live/hints.wiring.ts';
import { wirePolicy } from '../policy/policy.wiring.ts';
import { wireRunChanger } from '../run-changes/run-changer.wiring.ts';
import { wireExpressions } from '../workflow/expressions/expressions.wiring.ts';
import { executorFor } from './5-executor.ts';
import { WorkerEnvironment } from './environment.ts';
import type { Worker } from './worker.ts';

export function wireWorker(): Omit<Worker, 'timeLeftMs'> {
  const environment = readEnvironment(WorkerEnvironment);
  const aws = readEnvironment(AwsEnvironment);
  const changer = wireRunChanger(environment);
  return {
    ...changer,
    policy: wirePolicy(changer.stored),
    environment: environment.STAGE_KIND,
    connections: new StageConnections(
      {
        targets: systemConnections(changer.stored, secretNames(environment, 'connections')),
        messaging: systemConnections(changer.stored, secretNames(environment, 'messaging')),
      },
      { ownUrl: environment.OWN_URL, aws },
    ),
    expressions: wireExpressions(),
    ids: systemIds,
    random: systemPause.random,
    every: systemEvery,
    executorFor,
    agents: new DynamoAgentRegistry(changer.dynamo, environment.RUN_TABLE),
    lastOffered: new Map(),
    hints: wireHints(environment, changer.dynamo),
    assignmentSigner: new KmsSignRequest(aws, environment.SIGNING_KEY_ARN, environment.SIGNING_ALGORITHM),
    sessionSecret: stageSecret(environment.SESSION_SECRET_ARN),
    ownUrl: environment.OWN_URL,
  };
}
