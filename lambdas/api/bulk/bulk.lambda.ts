import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { stageSecret } from '../../entry/secrets-stage-secret.ts';
import { wireStarter } from '../../intake/starter.wiring.ts';
import { wireHints } from '../../live/hints.wiring.ts';
import { wireRunChanger } from '../../run-changes/run-changer.wiring.ts';
import { BulkEnvironment } from '../environment.ts';
import { handleBulk } from './bulk.ts';
import { DynamoBulkJobs } from './dynamo-bulk-jobs.ts';

const environment = readEnvironment(BulkEnvironment);
const starter = wireStarter();
const wired = wireRunChanger(environment);
const changer = { ...wired, ids: starter.ids, hints: wireHints(environment, wired.dynamo) };

/** About a second of the function's 25. */
const BATCH_RUNS = 20;

const ports = {
  ...starter,
  changer,
  batchRuns: BATCH_RUNS,
  starter,
  jobs: new DynamoBulkJobs(new DynamoDBClient(), environment.RUN_TABLE),
  cursorSecret: stageSecret(environment.CURSOR_SECRET_ARN),
};

export const handler = httpHandler((event) => handleBulk(ports, event));
