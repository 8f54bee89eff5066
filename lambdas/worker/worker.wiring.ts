import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type * as z from 'zod';
import { type AgentHints, noHints } from '../agents/agent-registry.ts';
import { DynamoAgentRegistry } from '../agents/dynamo-agent-registry.ts';
import { StageConnections } from '../connectors/connections.ts';
import { systemConnections } from '../connectors/secrets-connections.ts';
import { AwsEnvironment, readEnvironment } from '../entry/environment.ts';
import { stageSecret } from '../entry/secrets-stage-secret.ts';
import { systemClock, systemEvery, systemIds, systemPause } from '../entry/system.ts';
import { secretNames } from '../entry/tenant-secrets.ts';
import { KmsSignRequest } from '../evidence/signing/kms-sign-request.ts';
import { AwsSockets } from '../live/aws-sockets.ts';
import { DynamoLiveStore } from '../live/dynamo-live-store.ts';
import { socketHints } from '../live/socket-hints.ts';
import { wirePolicy } from '../policy/policy.wiring.ts';
import { wireRunChanger } from '../run-changes/run-changer.wiring.ts';
import { wireExpressions } from '../workflow/expressions/expressions.wiring.ts';
import { executorFor } from './5-executor.ts';
import { WorkerEnvironment } from './environment.ts';
import type { Worker } from './worker.ts';

function wireHints(
  { LIVE_CALLBACK_URL, RUN_TABLE }: z.output<typeof WorkerEnvironment>,
  aws: AwsEnvironment,
  dynamo: DynamoDBClient,
): AgentHints {
  if (LIVE_CALLBACK_URL === undefined) return noHints;
  return socketHints(new DynamoLiveStore(dynamo, RUN_TABLE, systemClock), new AwsSockets(aws, LIVE_CALLBACK_URL));
}

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
    hints: wireHints(environment, aws, changer.dynamo),
    assignmentSigner: new KmsSignRequest(aws, environment.SIGNING_KEY_ARN, environment.SIGNING_ALGORITHM),
    sessionSecret: stageSecret(environment.SESSION_SECRET_ARN),
  };
}
