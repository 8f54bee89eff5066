import { CfnOutput, Duration, RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
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
import type { NodeFunction } from './node-function.ts';
import type { StageConfig } from './stage-config.ts';

/** No public access, TLS only, and retained when the stack is deleted. */
export const PRIVATE_BUCKET = {
  blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
  encryption: BucketEncryption.S3_MANAGED,
  objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
  enforceSSL: true,
  removalPolicy: RemovalPolicy.RETAIN,
} satisfies BucketProps;

const PREFIXES = ['siem', 'artifacts'] as const;

/** Exports of finished runs for other systems. They may contain text that people wrote, so unlike evidence they expire and can be deleted. */
export class EvidenceExports extends Construct {
  readonly environment: { EXPORT_BUCKET: string; EXPORTS: string };
  readonly #bucket: Bucket;

  constructor(scope: Construct, id: string, { accessLogs, config }: { accessLogs: IBucket; config: StageConfig }) {
    super(scope, id);
    this.#bucket = new Bucket(this, 'Bucket', {
      ...PRIVATE_BUCKET,
      lifecycleRules: [{ expiration: Duration.days(config.exportRetentionDays) }],
      serverAccessLogsBucket: accessLogs,
      serverAccessLogsPrefix: 'exports/',
    });
    this.environment = { EXPORT_BUCKET: this.#bucket.bucketName, EXPORTS: JSON.stringify(config.exports) };
    new CfnOutput(Stack.of(this), 'ExportBucketName', { value: this.#bucket.bucketName });
  }

  writableBy(writer: NodeFunction): void {
    writer.allow(
      ['s3:PutObject'],
      PREFIXES.map((prefix) => this.#bucket.arnForObjects(`${prefix}/*`)),
    );
    const bucketId = Stack.of(this).getLogicalId(this.#bucket.node.defaultChild as CfnBucket);
    Validations.of(writer.node.scope ?? this).acknowledge(
      ...PREFIXES.map((prefix) => ({
        id: `AwsSolutions-IAM5[Resource::<${bucketId}.Arn>/${prefix}/*]`,
        reason: `Exports are named after runs; the permission ends at the ${prefix}/ prefix.`,
      })),
    );
  }
}
