import { Stack, Validations } from 'aws-cdk-lib';
import type { CfnBucket } from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import { EvidenceApiEnvironment } from '../../lambdas/evidence/environment.ts';
import type { CountersignHttpApi } from '../api/http-api.ts';
import type { FunctionBundles } from '../bundle-functions.ts';
import { NodeFunction, seconds } from '../node-function.ts';
import type { RunTable } from '../run-table.ts';
import type { EvidenceBucket } from './evidence-bucket.ts';

/** Reads a bundle of several megabytes, of which each response sends a part. */
const EVIDENCE_API_TIMEOUT = seconds(15);

interface EvidenceApiProps {
  bundles: FunctionBundles;
  httpApi: CountersignHttpApi;
  runTable: RunTable;
  evidence: EvidenceBucket;
}

/** The routes that return evidence bundles. */
export class EvidenceApi extends Construct {
  constructor(scope: Construct, id: string, { bundles, httpApi, runTable, evidence }: EvidenceApiProps) {
    super(scope, id);
    const fetch = new NodeFunction(this, 'Fetch', {
      bundles,
      entry: 'api/evidence/evidence',
      description: 'Returns the evidence of a run',
      schema: EvidenceApiEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        EVIDENCE_BUCKET: evidence.bucket.bucketName,
        EXPORT_BUCKET: evidence.exports.environment.EXPORT_BUCKET,
      },
      timeout: EVIDENCE_API_TIMEOUT,
    });
    runTable.allow(fetch, ['GetItem', 'Query'], ['RUN']);
    runTable.allow(fetch, ['GetItem'], ['LOG']);
    runTable.allowIndexQuery(fetch, 'bySubject');
    fetch.allow(
      ['s3:GetObject'],
      ['evidence/*', 'log/*', 'texts/*'].map((keys) => evidence.bucket.arnForObjects(keys)),
    );
    const bucketId = Stack.of(this).getLogicalId(evidence.bucket.node.defaultChild as CfnBucket);
    Validations.of(this).acknowledge({
      id: `AwsSolutions-IAM5[Resource::<${bucketId}.Arn>/evidence/*]`,
      reason: 'Bundles are named after tenants and runs; which one is read comes from the row of the caller’s own run.',
    });
    Validations.of(this).acknowledge({
      id: `AwsSolutions-IAM5[Resource::<${bucketId}.Arn>/log/*]`,
      reason: 'Files of changes are named after tenants and days; the tenant comes from the credential of the caller.',
    });
    Validations.of(this).acknowledge({
      id: `AwsSolutions-IAM5[Resource::<${bucketId}.Arn>/texts/*]`,
      reason: 'Texts are named after tenants and hashes; the tenant comes from the credential of the caller.',
    });
    evidence.exports.readableBy(fetch, 'artifacts');
    httpApi.serve('evidence', fetch);
  }
}
