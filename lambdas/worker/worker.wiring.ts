import { StageConnections } from '../connectors/connections.ts';
import { systemConnections } from '../connectors/secrets-connections.ts';
import { AwsEnvironment, readEnvironment } from '../entry/environment.ts';
import { systemEvery, systemIds, systemPause } from '../entry/system.ts';
import { secretNames } from '../entry/tenant-secrets.ts';
import { wirePolicy } from '../policy/policy.wiring.ts';
import { wireRunChanger } from '../run-changes/run-changer.wiring.ts';
import { wireExpressions } from '../workflow/expressions/expressions.wiring.ts';
import { executorFor } from './5-executor.ts';
import { WorkerEnvironment } from './environment.ts';
import type { Worker } from './worker.ts';

export function wireWorker(): Omit<Worker, 'timeLeftMs'> {
  const environment = readEnvironment(WorkerEnvironment);
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
      { ownUrl: environment.OWN_URL, aws: readEnvironment(AwsEnvironment) },
    ),
    expressions: wireExpressions(),
    ids: systemIds,
    random: systemPause.random,
    every: systemEvery,
    executorFor,
  };
}
