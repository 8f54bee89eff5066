import { S3Client } from '@aws-sdk/client-s3';
import { DynamoAgentRegistry } from '../../agents/dynamo-agent-registry.ts';
import { DynamoOutputStore } from '../../agents/dynamo-output-store.ts';
import { S3OutputArchive } from '../../agents/s3-output-archive.ts';
import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { stageSecret } from '../../entry/secrets-stage-secret.ts';
import { systemClock, systemPause } from '../../entry/system.ts';
import { wireRunChanger } from '../../run-changes/run-changer.wiring.ts';
import { executorFor } from '../../worker/5-executor.ts';
import { AgentWorkEnvironment } from '../environment.ts';
import { handleAgentWork } from './agent-work.ts';

const environment = readEnvironment(AgentWorkEnvironment);
const changer = wireRunChanger(environment);

const api = {
  ...changer,
  random: systemPause.random,
  executorFor,
  sessionSecret: stageSecret(environment.SESSION_SECRET_ARN),
  agents: new DynamoAgentRegistry(changer.dynamo, environment.RUN_TABLE),
  output: new DynamoOutputStore(changer.dynamo, environment.RUN_TABLE, systemClock),
  archive: new S3OutputArchive(new S3Client(), environment.EXPORT_BUCKET),
};

export const handler = httpHandler((event) => handleAgentWork(api, event));
