import { CfnOutput, Duration, RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
import { AnyPrincipal, Effect, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { Key, KeySpec, KeyUsage } from 'aws-cdk-lib/aws-kms';
import { Bucket, type CfnBucket, ObjectLockRetention } from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import { SealEnvironment, type SigningAlgorithm } from '../../lambdas/evidence/environment.ts';
import type { FunctionBundles } from '../bundle-functions.ts';
import { NodeFunction, seconds } from '../node-function.ts';
import type { RunTable } from '../run-table.ts';
import type { StageConfig } from '../stage-config.ts';
import type { WorkQueue } from '../work-queue.ts';
import { EvidenceExports, PRIVATE_BUCKET } from './evidence-exports.ts';
import { Traces } from './traces.ts';

export const SEAL_TIMEOUT = seconds(60);
/** Runs that end within the batch window are sealed together: one signature, and one object for those of a tenant. */
const SEAL_BATCH = 10;
const ALGORITHMS = {
  ed25519: { keySpec: KeySpec.ECC_NIST_EDWARDS25519, signing: 'ED25519_SHA_512' },
  p256: { keySpec: KeySpec.ECC_NIST_P256, signing: 'ECDSA_SHA_256' },
} as const;
const ACCESS_LOG_RETENTION = Duration.days(365);

/** The bucket of evidence bundles (write once, Object Lock), the KMS keys that sign them, and the function that seals runs. */
export class EvidenceBucket extends Construct {
  readonly bucket: Bucket;
  /** For every bucket of the stage. */
  readonly accessLogs: Bucket;
  /** Oldest first; the last one signs. */
  readonly keys: { name: string; keyId: string; validUntil: string | null }[];
  /** Environment of the functions that sign. */
  readonly signing: { SIGNING_KEY_ARN: string; SIGNING_ALGORITHM: SigningAlgorithm; EVIDENCE_KEYS: string };
  readonly seal: NodeFunction;
  readonly exports: EvidenceExports;

  constructor(
    scope: Construct,
    id: string,
    props: { bundles: FunctionBundles; runTable: RunTable; config: StageConfig; sealQueue: WorkQueue },
  ) {
    super(scope, id);
    const { bundles, runTable, config, sealQueue } = props;
    const accessLogs = this.#accessLogs();
    this.accessLogs = accessLogs;
    this.bucket = this.#lockedBucket(config, accessLogs);
    this.exports = new EvidenceExports(this, 'Exports', { accessLogs, config });
    const { exports } = this;
    const keys = config.evidenceKeys.map((key) => ({ ...key, keyId: this.#signingKey(config, key).keyArn }));
    const current = keys.at(-1);
    if (!current) throw new Error('a stage has at least one evidence key');
    this.keys = keys.map(({ name, keyId, retiredOn = null }) => ({ name, keyId, validUntil: retiredOn }));
    this.signing = {
      SIGNING_KEY_ARN: current.keyId,
      SIGNING_ALGORITHM: ALGORITHMS[current.algorithm].signing,
      EVIDENCE_KEYS: Stack.of(this).toJsonString(this.keys.map(({ keyId, validUntil }) => ({ keyId, validUntil }))),
    };

    const retentionDays = config.finishedRunRetentionDays;
    const traces = new Traces(this, 'Traces', config);
    this.seal = new NodeFunction(this, 'Seal', {
      bundles,
      entry: 'evidence/bundle/seal',
      description: 'Seals the evidence bundles of finished runs',
      schema: SealEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        EVIDENCE_BUCKET: this.bucket.bucketName,
        STAGE: config.stage,
        STAGE_KIND: config.kind,
        ...traces.environment,
        ...this.signing,
        ...exports.environment,
        ...(retentionDays !== undefined && { FINISHED_RUN_RETENTION_DAYS: String(retentionDays) }),
      },
      timeout: SEAL_TIMEOUT,
    });
    const { seal } = this;
    sealQueue.consumedBy(seal, { batchSize: SEAL_BATCH, maxConcurrency: config.sealConcurrency });
    runTable.allow(seal, ['Query', 'GetItem'], ['RUN']);
    if (retentionDays !== undefined) runTable.allow(seal, ['UpdateItem'], ['RUN']);
    runTable.allow(seal, ['PutItem'], ['RUN', 'LOG', 'OUTBOX']);
    runTable.allow(seal, ['BatchGetItem'], ['RECEIPT']);
    runTable.allow(seal, ['DeleteItem'], ['OUTBOX']);
    // It may write and read evidence, but neither delete nor unlock it.
    seal.allow(['s3:PutObject', 's3:GetObject'], [this.bucket.arnForObjects('evidence/*')]);
    const bucketId = Stack.of(this).getLogicalId(this.bucket.node.defaultChild as CfnBucket);
    Validations.of(this).acknowledge({
      id: `AwsSolutions-IAM5[Resource::<${bucketId}.Arn>/evidence/*]`,
      reason: 'Bundles are named after tenants and hashes; the permission ends at the evidence/ prefix.',
    });
    // The policies and the workflow version of a run, which evidence names by their hashes.
    runTable.allow(seal, ['GetItem'], ['TENANT']);
    this.allowTexts(seal);
    exports.writableBy(seal, 'siem', 'artifacts', 'output');
    // The output of commands that could not be written when they completed. That of a lost agent is closed first.
    runTable.allow(seal, ['Query', 'GetItem', 'PutItem'], ['OUT']);
    traces.allow(seal);
    this.allowSigning(seal);
    new CfnOutput(Stack.of(this), 'EvidenceBucketName', { value: this.bucket.bucketName });
    new CfnOutput(Stack.of(this), 'SigningKeyArn', { value: this.signing.SIGNING_KEY_ARN });
  }

  /** Lets a function sign with the last key and verify signatures of all keys. */
  allowSigning(to: NodeFunction): void {
    to.allow(['kms:Sign'], [this.signing.SIGNING_KEY_ARN]);
    to.allow(
      ['kms:GetPublicKey'],
      this.keys.map(({ keyId }) => keyId),
    );
  }

  /** Lets a function store policy sets and workflow versions by hash. */
  allowTexts(to: NodeFunction): void {
    to.allow(['s3:PutObject'], [this.bucket.arnForObjects('texts/*')]);
    const bucketId = Stack.of(this).getLogicalId(this.bucket.node.defaultChild as CfnBucket);
    Validations.of(to.node.scope ?? to).acknowledge({
      id: `AwsSolutions-IAM5[Resource::<${bucketId}.Arn>/texts/*]`,
      reason: 'Texts are named after tenants and hashes; the permission ends at the texts/ prefix.',
    });
  }

  #accessLogs(): Bucket {
    const accessLogs = new Bucket(this, 'AccessLogs', {
      ...PRIVATE_BUCKET,
      lifecycleRules: [{ expiration: ACCESS_LOG_RETENTION }],
    });
    Validations.of(accessLogs).acknowledge({
      id: 'AwsSolutions-S1',
      reason: 'This bucket contains the access logs; access logging for it would log itself.',
    });
    return accessLogs;
  }

  #lockedBucket({ kind, evidenceRetentionDays }: StageConfig, accessLogs: Bucket): Bucket {
    const retention = Duration.days(evidenceRetentionDays);
    const bucket = new Bucket(this, 'Bucket', {
      ...PRIVATE_BUCKET,
      versioned: true,
      objectLockEnabled: true,
      objectLockDefaultRetention:
        kind === 'prod' ? ObjectLockRetention.compliance(retention) : ObjectLockRetention.governance(retention),
      serverAccessLogsBucket: accessLogs,
      serverAccessLogsPrefix: 'evidence/',
    });
    // Object Lock protects every version, but readers get the latest one. So each write must carry If-None-Match, which
    // fails if the object exists. Copies and multipart uploads cannot carry it and are denied too.
    bucket.addToResourcePolicy(
      new PolicyStatement({
        sid: 'WriteOnce',
        effect: Effect.DENY,
        principals: [new AnyPrincipal()],
        actions: ['s3:PutObject'],
        resources: [bucket.arnForObjects('*')],
        conditions: { Null: { 's3:if-none-match': 'true' } },
      }),
    );
    return bucket;
  }

  /** KMS does not rotate signing keys. A new key replaces this one, which remains so that its signatures can be verified. */
  #signingKey({ stage, kind }: StageConfig, { name, algorithm }: StageConfig['evidenceKeys'][number]): Key {
    return new Key(this, `SigningKey-${name}`, {
      description: `Signs the evidence of ${stage} (${name})`,
      keySpec: ALGORITHMS[algorithm].keySpec,
      keyUsage: KeyUsage.SIGN_VERIFY,
      removalPolicy: kind === 'prod' ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
    });
  }
}
