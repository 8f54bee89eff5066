import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import { readEnvironment } from '../entry/environment.ts';
import { functionHandler } from '../entry/middy-handler.ts';
import { systemClock, systemLog } from '../entry/system.ts';
import { closeDays } from './daily-log-close.ts';
import { DynamoDailyLog } from './dynamo-daily-log.ts';
import { DailyLogEnvironment } from './environment.ts';
import { KmsSigner } from './kms-signer.ts';
import { S3EvidenceStore } from './s3-evidence-store.ts';

const environment = readEnvironment(DailyLogEnvironment);

const closer = {
  rows: new DynamoDailyLog(new DynamoDBClient(), environment.RUN_TABLE),
  store: new S3EvidenceStore(new S3Client(), environment.EVIDENCE_BUCKET),
  signer: new KmsSigner(new KMSClient(), environment),
  clock: systemClock,
  log: systemLog,
};

/** One tenant's broken log must not keep the others open: all are tried, then the failure is told. */
export const handler = functionHandler<unknown, void>().handler(async () => {
  const closed = await Promise.allSettled(environment.TENANTS.map((tenant) => closeDays(closer, tenant)));
  const failures = closed.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  for (const error of failures) systemLog.error('the evidence log of a day was not closed', { error });
  if (failures.length > 0) throw failures[0];
});
