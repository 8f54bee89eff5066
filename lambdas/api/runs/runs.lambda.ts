import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { S3Client } from '@aws-sdk/client-s3';
import { DynamoOutputStore } from '../../agents/dynamo-output-store.ts';
import { S3OutputArchive } from '../../agents/s3-output-archive.ts';
import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { stageSecret } from '../../entry/secrets-stage-secret.ts';
import { systemClock, systemPause } from '../../entry/system.ts';
import { CachedDefinitions } from '../../pipeline/cached-definitions.ts';
import { DynamoDefinitions } from '../../pipeline/dynamo-definitions.ts';
import { DynamoRunStore } from '../../run/dynamo/dynamo-run-store.ts';
import { RunsEnvironment } from '../environment.ts';
import { handleRuns } from './runs.ts';

const environment = readEnvironment(RunsEnvironment);
const dynamo = new DynamoDBClient();

const api = {
  runs: new DynamoRunStore(dynamo, environment.RUN_TABLE, systemPause, systemClock),
  definitions: new CachedDefinitions(new DynamoDefinitions(dynamo, environment.RUN_TABLE), systemClock.now),
  output: new DynamoOutputStore(dynamo, environment.RUN_TABLE, systemClock),
  archive: new S3OutputArchive(new S3Client(), environment.EXPORT_BUCKET),
  clock: systemClock,
  traceUrl: environment.TRACE_URL,
  cursorSecret: stageSecret(environment.CURSOR_SECRET_ARN),
};

export const handler = httpHandler((event) => handleRuns(api, event));
