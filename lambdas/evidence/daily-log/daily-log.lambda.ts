import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import { readEnvironment } from '../../entry/environment.ts';
import { functionHandler } from '../../entry/middy-handler.ts';
import { systemClock, systemLog, systemPause } from '../../entry/system.ts';
import { DailyLogEnvironment } from '../environment.ts';
import { S3EvidenceStore } from '../s3-evidence-store.ts';
import { KmsSigner } from '../signing/kms-signer.ts';
import { closeDays } from './close-days.ts';
import { DynamoDailyLog } from './dynamo-daily-log.ts';

const HOUR_MS = 60 * 60 * 1000;

const environment = readEnvironment(DailyLogEnvironment);

const closer = {
  rows: new DynamoDailyLog(new DynamoDBClient(), environment.RUN_TABLE),
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
  for (const tenant of [...TENANTS.slice(first), ...TENANTS.slice(0, first)]) {
    await closeDays(closer, tenant).catch((error: unknown) => {
      systemLog.error('cannot close the evidence log of a day', { error });
      failures.push(error);
    });
  }
  if (failures.length > 0) throw failures[0];
});
