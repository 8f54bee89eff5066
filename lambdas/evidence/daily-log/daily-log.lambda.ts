import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import { readEnvironment } from '../../entry/environment.ts';
import { functionHandler } from '../../entry/middy-handler.ts';
import { systemClock, systemLog, systemPause } from '../../entry/system.ts';
import { DynamoAcceptedRuns } from '../accepted-runs/dynamo-accepted-runs.ts';
import { writeAcceptedLists } from '../accepted-runs/write-accepted-list.ts';
import { closeChangeDays } from '../change-log/close-change-days.ts';
import { DynamoChangeLog } from '../change-log/dynamo-change-log.ts';
import { DailyLogEnvironment } from '../environment.ts';
import { S3EvidenceStore } from '../s3-evidence-store.ts';
import { KmsSigner } from '../signing/kms-signer.ts';
import { closeDays } from './close-days.ts';
import { DynamoDailyLog } from './dynamo-daily-log.ts';

const HOUR_MS = 60 * 60 * 1000;

const environment = readEnvironment(DailyLogEnvironment);

const dynamo = new DynamoDBClient();
const changeRows = new DynamoChangeLog(dynamo, environment.RUN_TABLE);
const acceptedRows = new DynamoAcceptedRuns(dynamo, environment.RUN_TABLE, systemPause);
const closer = {
  rows: new DynamoDailyLog(dynamo, environment.RUN_TABLE),
  store: new S3EvidenceStore(new S3Client(), environment.EVIDENCE_BUCKET, systemPause),
  signer: new KmsSigner(new KMSClient(), environment),
  clock: systemClock,
  log: systemLog,
};

/**
 * Tries all tenants, then throws the first failure, so that a broken log does not block the others. One tenant at a time,
 * because a large day needs most of the memory. Each hour another tenant is first, in case the time does not suffice for all.
 */
export const handler = functionHandler<unknown, void>().handler(async () => {
  const failures: unknown[] = [];
  const { TENANTS } = environment;
  const first = Math.floor(systemClock.now() / HOUR_MS) % TENANTS.length;
  const tenants = [...TENANTS.slice(first), ...TENANTS.slice(0, first)];
  for (const tenant of tenants) {
    await writeAcceptedLists({ ...closer, rows: acceptedRows }, tenant).catch((error: unknown) => {
      systemLog.error('cannot list the accepted runs of an hour', { error });
      failures.push(error);
    });
  }
  for (const tenant of tenants) {
    await closeDays(closer, tenant).catch((error: unknown) => {
      systemLog.error('cannot close the evidence log of a day', { error });
      failures.push(error);
    });
  }
  for (const tenant of tenants) {
    await closeChangeDays({ ...closer, rows: changeRows }, tenant).catch((error: unknown) => {
      systemLog.error('cannot close the changes of a day', { error });
      failures.push(error);
    });
  }
  if (failures.length > 0) throw failures[0];
});
