import { CfnOutput, Duration, Stack, Validations } from 'aws-cdk-lib';
import { Rule, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets';
import type { CfnBucket } from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import { CONTRACT } from '../../lambdas/api/contract/index.ts';
import { DailyLogEnvironment, KeysEnvironment, SMALL_YOUNG_GENERATION } from '../../lambdas/evidence/environment.ts';
import type { CountersignHttpApi } from '../api/http-api.ts';
import type { FunctionBundles } from '../bundle-functions.ts';
import { NodeFunction, seconds } from '../node-function.ts';
import type { RunTable } from '../run-table.ts';
import type { StageConfig } from '../stage-config.ts';
import type { EvidenceBucket } from './evidence-bucket.ts';

/** Days end at midnight UTC. A failure is retried within an hour. */
const CLOSE_EVERY = Duration.hours(1);
/** Tenants are processed in sequence; a day of 200,000 runs takes about two minutes. */
const CLOSE_TIMEOUT = Duration.minutes(15);
const KEYS_TIMEOUT = seconds(10);
const KEYS_PATH = CONTRACT.evidenceKeys.listEvidenceKeys.path;

interface EvidenceLogProps {
  bundles: FunctionBundles;
  config: StageConfig;
  httpApi: CountersignHttpApi;
  runTable: RunTable;
  evidence: EvidenceBucket;
}

/** What auditors verify evidence with: a signed log of each day's bundles, and the public keys. */
export class EvidenceLog extends Construct {
  readonly closeDays: NodeFunction;

  constructor(scope: Construct, id: string, props: EvidenceLogProps) {
    super(scope, id);
    this.closeDays = this.#closeDays(props);
    this.#publishKeys(props);
  }

  #closeDays({ bundles, config, runTable, evidence }: EvidenceLogProps): NodeFunction {
    const closeDays = new NodeFunction(this, 'CloseDays', {
      bundles,
      entry: 'evidence/daily-log/daily-log',
      description: 'Lists accepted runs every hour and closes the evidence log of each finished day',
      schema: DailyLogEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        EVIDENCE_BUCKET: evidence.bucket.bucketName,
        ...evidence.signing,
        TENANTS: JSON.stringify([...config.tenants, ...config.formerTenants]),
        NODE_OPTIONS: SMALL_YOUNG_GENERATION,
      },
      timeout: CLOSE_TIMEOUT,
    });
    runTable.allow(closeDays, ['Query', 'GetItem', 'PutItem'], ['LOG']);
    runTable.allow(closeDays, ['Query'], ['CHANGE']);
    // Lists the accepted runs: which there are, whether they are sealed, and where their chains of commits end.
    runTable.allow(closeDays, ['BatchGetItem'], ['RUN']);
    runTable.allowIndexQuery(closeDays, 'byTenant');
    closeDays.allow(['s3:PutObject', 's3:GetObject'], [evidence.bucket.arnForObjects('log/*')]);
    const bucketId = Stack.of(this).getLogicalId(evidence.bucket.node.defaultChild as CfnBucket);
    Validations.of(this).acknowledge({
      id: `AwsSolutions-IAM5[Resource::<${bucketId}.Arn>/log/*]`,
      reason: 'Logs are named after tenants and days; the permission ends at the log/ prefix.',
    });
    evidence.allowSigning(closeDays);
    new Rule(this, 'EveryHour', {
      schedule: Schedule.rate(CLOSE_EVERY),
      // The next invocation closes what this one did not.
      targets: [new LambdaFunction(closeDays, { retryAttempts: 0 })],
    });
    return closeDays;
  }

  #publishKeys({ bundles, httpApi, evidence }: EvidenceLogProps): void {
    const keys = new NodeFunction(this, 'Keys', {
      bundles,
      entry: 'evidence/signing/keys',
      description: 'Publishes the public keys of evidence',
      schema: KeysEnvironment,
      environment: { EVIDENCE_KEYS: evidence.signing.EVIDENCE_KEYS },
      timeout: KEYS_TIMEOUT,
    });
    keys.allow(
      ['kms:GetPublicKey'],
      evidence.keys.map(({ keyId }) => keyId),
    );
    httpApi.serve('evidenceKeys', keys);
    new CfnOutput(Stack.of(this), 'KeysUrl', { value: `${httpApi.url}${KEYS_PATH}` });
  }
}
