import { CfnOutput, Duration, RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
import { Key } from 'aws-cdk-lib/aws-kms';
import {
  BlockPublicAccess,
  Bucket,
  BucketEncryption,
  type BucketProps,
  type CfnBucket,
  type IBucket,
  ObjectOwnership,
} from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import type { NodeFunction } from '../node-function.ts';
import type { StageConfig } from '../stage-config.ts';

/** No public access, TLS only, and retained when the stack is deleted. */
export const PRIVATE_BUCKET = {
  blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
  encryption: BucketEncryption.S3_MANAGED,
  objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
  enforceSSL: true,
  removalPolicy: RemovalPolicy.RETAIN,
} satisfies BucketProps;

type Prefix = 'siem' | 'artifacts' | 'output';

/**
 * Exports of finished runs for other systems, and the output of commands. They may contain text that people and programs
 * wrote, so unlike evidence they expire and can be deleted.
 */
export class EvidenceExports extends Construct {
  readonly environment: { EXPORT_BUCKET: string; EXPORTS: string; VALUES_KEY_ARN: string };
  readonly #bucket: Bucket;
  /** Of the artifacts, which have the values behind the digests of evidence. Who may not use it cannot read them. */
  readonly #valuesKey: Key;

  constructor(scope: Construct, id: string, { accessLogs, config }: { accessLogs: IBucket; config: StageConfig }) {
    super(scope, id);
    this.#bucket = new Bucket(this, 'Bucket', {
      ...PRIVATE_BUCKET,
      lifecycleRules: [
        ...(['siem', 'output'] as const).map((prefix) => ({
          prefix: `${prefix}/`,
          expiration: Duration.days(config.exportRetentionDays),
        })),
        {
          prefix: 'artifacts/',
          expiration: Duration.days(config.valuesRetentionDays ?? config.evidenceRetentionDays),
        },
      ],
      serverAccessLogsBucket: accessLogs,
      serverAccessLogsPrefix: 'exports/',
    });
    this.#valuesKey = new Key(this, 'ValuesKey', {
      description: `Encrypts the values behind the evidence of ${config.stage}`,
      enableKeyRotation: true,
      removalPolicy: config.kind === 'prod' ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
    });
    this.environment = {
      EXPORT_BUCKET: this.#bucket.bucketName,
      EXPORTS: JSON.stringify(config.exports),
      VALUES_KEY_ARN: this.#valuesKey.keyArn,
    };
    new CfnOutput(Stack.of(this), 'ExportBucketName', { value: this.#bucket.bucketName });
  }

  writableBy(writer: NodeFunction, ...prefixes: Prefix[]): void {
    this.#allow(writer, 's3:PutObject', prefixes);
    if (prefixes.includes('artifacts')) writer.allow(['kms:GenerateDataKey'], [this.#valuesKey.keyArn]);
  }

  readableBy(reader: NodeFunction, ...prefixes: Prefix[]): void {
    this.#allow(reader, 's3:GetObject', prefixes);
    if (prefixes.includes('artifacts')) reader.allow(['kms:Decrypt'], [this.#valuesKey.keyArn]);
  }

  #allow(to: NodeFunction, action: string, prefixes: readonly Prefix[]): void {
    to.allow(
      [action],
      prefixes.map((prefix) => this.#bucket.arnForObjects(`${prefix}/*`)),
    );
    const bucketId = Stack.of(this).getLogicalId(this.#bucket.node.defaultChild as CfnBucket);
    Validations.of(to.node.scope ?? this).acknowledge(
      ...prefixes.map((prefix) => ({
        id: `AwsSolutions-IAM5[Resource::<${bucketId}.Arn>/${prefix}/*]`,
        reason: `Objects are named after runs; the permission ends at the ${prefix}/ prefix.`,
      })),
    );
  }
}
