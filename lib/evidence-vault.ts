import { CfnOutput, Duration, RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
import { Key, KeySpec, KeyUsage } from 'aws-cdk-lib/aws-kms';
import {
  BlockPublicAccess,
  Bucket,
  BucketEncryption,
  type CfnBucket,
  ObjectLockRetention,
  ObjectOwnership,
} from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import { SealEnvironment } from '../lambdas/evidence/environment.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';
import type { StageConfig } from './stage-config.ts';
import { WorkQueue } from './work-queue.ts';

const SEAL_TIMEOUT = seconds(60);
const SEAL_CONCURRENCY = 10;
const SEAL_BATCH = 5;
const ACCESS_LOGS_KEPT = Duration.days(365);

/** Where runs end: a bucket nobody can rewrite, a key that signs and never leaves KMS, and the function that seals. */
export class EvidenceVault extends Construct {
  readonly sealQueue: WorkQueue;
  readonly bucket: Bucket;

  constructor(
    scope: Construct,
    id: string,
    props: { bundles: FunctionBundles; runTable: RunTable; config: StageConfig },
  ) {
    super(scope, id);
    const { bundles, runTable, config } = props;
    this.bucket = this.#lockedBucket(config);
    const signingKey = this.#signingKey(config);
    this.sealQueue = new WorkQueue(this, 'SealQueue', { consumerTimeout: SEAL_TIMEOUT });

    const seal = new NodeFunction(this, 'Seal', {
      bundles,
      entry: 'evidence/seal',
      description: 'Seals the evidence bundle of a finished run',
      schema: SealEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        EVIDENCE_BUCKET: this.bucket.bucketName,
        SIGNING_KEY_ARN: signingKey.keyArn,
      },
      timeout: SEAL_TIMEOUT,
    });
    this.sealQueue.consumedBy(seal, { batchSize: SEAL_BATCH, maxConcurrency: SEAL_CONCURRENCY });
    runTable.allow(seal, ['Query', 'PutItem'], ['RUN']);
    runTable.allow(seal, ['BatchGetItem'], ['RECEIPT']);
    runTable.allow(seal, ['DeleteItem'], ['OUTBOX']);
    // It may add evidence and read it back, never delete or unlock it.
    seal.allow(['s3:PutObject', 's3:GetObject'], [this.bucket.arnForObjects('evidence/*')]);
    const bucketId = Stack.of(this).getLogicalId(this.bucket.node.defaultChild as CfnBucket);
    Validations.of(this).acknowledge({
      id: `AwsSolutions-IAM5[Resource::<${bucketId}.Arn>/evidence/*]`,
      reason: 'Bundles are named after runs; the permission ends at the evidence/ prefix.',
    });
    seal.allow(['kms:Sign'], [signingKey.keyArn]);
    new CfnOutput(this, 'BucketName', { value: this.bucket.bucketName });
    new CfnOutput(this, 'SigningKeyArn', { value: signingKey.keyArn });
  }

  #lockedBucket({ kind, evidenceRetentionDays }: StageConfig): Bucket {
    const prod = kind === 'prod';
    const closed = {
      blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
      encryption: BucketEncryption.S3_MANAGED,
      objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
      enforceSSL: true,
      removalPolicy: RemovalPolicy.RETAIN,
    };
    const accessLogs = new Bucket(this, 'AccessLogs', {
      ...closed,
      lifecycleRules: [{ expiration: ACCESS_LOGS_KEPT }],
    });
    Validations.of(accessLogs).acknowledge({
      id: 'AwsSolutions-S1',
      reason: 'This bucket holds the access logs; logging it into itself would never end.',
    });
    const retention = Duration.days(evidenceRetentionDays);
    return new Bucket(this, 'Bucket', {
      ...closed,
      versioned: true,
      objectLockEnabled: true,
      objectLockDefaultRetention: prod
        ? ObjectLockRetention.compliance(retention)
        : ObjectLockRetention.governance(retention),
      serverAccessLogsBucket: accessLogs,
      serverAccessLogsPrefix: 'evidence/',
    });
  }

  #signingKey({ stage, kind }: StageConfig): Key {
    return new Key(this, 'SigningKey', {
      description: `Signs the evidence of ${stage}`,
      keySpec: KeySpec.ECC_NIST_EDWARDS25519,
      keyUsage: KeyUsage.SIGN_VERIFY,
      removalPolicy: kind === 'prod' ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
    });
  }
}
