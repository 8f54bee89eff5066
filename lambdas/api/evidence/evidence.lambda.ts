import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { S3Client } from '@aws-sdk/client-s3';
import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { systemClock, systemPause } from '../../entry/system.ts';
import { DynamoChangeLog } from '../../evidence/change-log/dynamo-change-log.ts';
import { EvidenceApiEnvironment } from '../../evidence/environment.ts';
import { S3EvidenceStore } from '../../evidence/s3-evidence-store.ts';
import { DynamoRunStore } from '../../run/dynamo/dynamo-run-store.ts';
import { handleEvidence } from './evidence.ts';

const environment = readEnvironment(EvidenceApiEnvironment);

const dynamo = new DynamoDBClient();
const s3 = new S3Client();
const api = {
  changeLogs: new DynamoChangeLog(dynamo, environment.RUN_TABLE),
  runs: new DynamoRunStore(dynamo, environment.RUN_TABLE, systemPause, systemClock),
  store: new S3EvidenceStore(s3, environment.EVIDENCE_BUCKET, systemPause),
  artifacts: new S3EvidenceStore(s3, environment.EXPORT_BUCKET, systemPause),
};

export const handler = httpHandler((event) => handleEvidence(api, event));
