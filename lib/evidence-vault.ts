import { CfnOutput, Duration, RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
import { Key, KeySpec, KeyUsage } from 'aws-cdk-lib/aws-kms';
import { Bucket, type CfnBucket, ObjectLockRetention } from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import { SealEnvironment, type SigningAlgorithm } from '../lambdas/evidence/environment.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import { CLOSED_BUCKET, EvidenceExports } from './evidence-exports.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';
import type { StageConfig } from './stage-config.ts';
import { WorkQueue } from './work-queue.ts';

const SEAL_TIMEOUT = seconds(60);
const SEAL_CONCURRENCY = 10;
const SEAL_BATCH = 5;
const ALGORITHMS = {
  ed25519: { keySpec: KeySpec.ECC_NIST_EDWARDS25519, signing: 'ED25519_SHA_512' },
  p256: { keySpec: KeySpec.ECC_NIST_P256, signing: 'ECDSA_SHA_256' },
} as const;
const ACCESS_LOGS_KEPT = Duration.days(365);

/** Where runs end: a bucket nobody can rewrite, a key that signs and never leaves KMS, and the function that seals. */
export class EvidenceVault extends Construct {
  readonly sealQueue: WorkQueue;
  readonly bucket: Bucket;
  /** Oldest first; the last one signs. */
  readonly keys: { keyId: string; validUntil: string | null }[];
  /** What everything that signs has in its environment. */
  readonly signing: { SIGNING_KEY_ARN: string; SIGNING_ALGORITHM: SigningAlgorithm };

  constructor(
    scope: Construct,
    id: string,
    props: { bundles: FunctionBundles; runTable: RunTable; config: StageConfig },
  ) {
    super(scope, id);
    const { bundles, runTable, config } = props;
    const accessLogs = this.#accessLogs();
    this.bucket = this.#lockedBucket(config, accessLogs);
    const exports = new EvidenceExports(this, 'Exports', { accessLogs, config });
    const keys = config.evidenceKeys.map((key) => ({ ...key, keyId: this.#signingKey(config, key).keyArn }));
    const current = keys.at(-1);
    if (!current) throw new Error('a stage has at least one evidence key');
    this.keys = keys.map(({ keyId, retiredOn = null }) => ({ keyId, validUntil: retiredOn }));
    this.signing = { SIGNING_KEY_ARN: current.keyId, SIGNING_ALGORITHM: ALGORITHMS[current.algorithm].signing };
    this.sealQueue = new WorkQueue(this, 'SealQueue', { consumerTimeout: SEAL_TIMEOUT });

    const seal = new NodeFunction(this, 'Seal', {
      bundles,
      entry: 'evidence/seal',
      description: 'Seals the evidence bundle of a finished run',
      schema: SealEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        EVIDENCE_BUCKET: this.bucket.bucketName,
        ...this.signing,
        ...exports.environment,
      },
      timeout: SEAL_TIMEOUT,
    });
    this.sealQueue.consumedBy(seal, { batchSize: SEAL_BATCH, maxConcurrency: SEAL_CONCURRENCY });
    runTable.allow(seal, ['Query'], ['RUN']);
    runTable.allow(seal, ['PutItem'], ['RUN', 'LOG', 'OUTBOX']);
    runTable.allow(seal, ['BatchGetItem'], ['RECEIPT']);
    runTable.allow(seal, ['DeleteItem'], ['OUTBOX']);
    // It may add evidence and read it back, never delete or unlock it.
    seal.allow(['s3:PutObject', 's3:GetObject'], [this.bucket.arnForObjects('evidence/*')]);
    const bucketId = Stack.of(this).getLogicalId(this.bucket.node.defaultChild as CfnBucket);
    Validations.of(this).acknowledge({
      id: `AwsSolutions-IAM5[Resource::<${bucketId}.Arn>/evidence/*]`,
      reason: 'Bundles are named after runs; the permission ends at the evidence/ prefix.',
    });
    exports.writableBy(seal);
    seal.allow(['kms:Sign'], [this.signing.SIGNING_KEY_ARN]);
    new CfnOutput(this, 'BucketName', { value: this.bucket.bucketName });
    new CfnOutput(this, 'SigningKeyArn', { value: this.signing.SIGNING_KEY_ARN });
  }

  #accessLogs(): Bucket {
    const accessLogs = new Bucket(this, 'AccessLogs', {
      ...CLOSED_BUCKET,
      lifecycleRules: [{ expiration: ACCESS_LOGS_KEPT }],
    });
    Validations.of(accessLogs).acknowledge({
      id: 'AwsSolutions-S1',
      reason: 'This bucket holds the access logs; logging it into itself would never end.',
    });
    return accessLogs;
  }

  #lockedBucket({ kind, evidenceRetentionDays }: StageConfig, accessLogs: Bucket): Bucket {
    const retention = Duration.days(evidenceRetentionDays);
    return new Bucket(this, 'Bucket', {
      ...CLOSED_BUCKET,
      versioned: true,
      objectLockEnabled: true,
      objectLockDefaultRetention:
        kind === 'prod' ? ObjectLockRetention.compliance(retention) : ObjectLockRetention.governance(retention),
      serverAccessLogsBucket: accessLogs,
      serverAccessLogsPrefix: 'evidence/',
    });
  }

  /** A key of KMS that signs is never changed by rotation: another takes its place, and it stays to be asked for. */
  #signingKey({ stage, kind }: StageConfig, { name, algorithm }: StageConfig['evidenceKeys'][number]): Key {
    return new Key(this, `SigningKey-${name}`, {
      description: `Signs the evidence of ${stage} (${name})`,
      keySpec: ALGORITHMS[algorithm].keySpec,
      keyUsage: KeyUsage.SIGN_VERIFY,
      removalPolicy: kind === 'prod' ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
    });
  }
}
