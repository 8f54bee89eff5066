import { Aws, RemovalPolicy, Validations } from 'aws-cdk-lib';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';
import { type SecretPurpose, secretName } from '../lambdas/entry/tenant-secrets.ts';
import type { NodeFunction } from './node-function.ts';
import type { StageConfig } from './stage-config.ts';

interface TenantSecretsProps extends StageConfig {
  purpose: SecretPurpose;
  description: string;
  /** The entry of the JSON object that CloudFormation generates. Operators add the others. */
  generatedEntry: string;
}

/** The secrets of one purpose, one for each tenant, each a JSON object. Functions get access to all secrets of a purpose. */
export class TenantSecrets extends Construct {
  /** Environment of the functions that read the secrets. */
  readonly environment: { STAGE: string; STAGE_KIND: StageConfig['kind']; TENANTS: string };
  /** Matches the secrets of all tenants. Secrets Manager appends a dash and six characters to the names in ARNs. */
  readonly #namePattern: string;

  constructor(scope: Construct, id: string, props: TenantSecretsProps) {
    super(scope, id);
    const { stage, kind, tenants, purpose, description, generatedEntry } = props;
    this.environment = { STAGE: stage, STAGE_KIND: kind, TENANTS: tenants.join(',') };
    this.#namePattern = `${secretName(stage, '*', purpose)}-??????`;
    for (const tenant of tenants) {
      const secret = new Secret(this, tenant, {
        secretName: secretName(stage, tenant, purpose),
        description: `${description} (${tenant})`,
        generateSecretString: {
          secretStringTemplate: '{}',
          generateStringKey: generatedEntry,
          excludePunctuation: true,
        },
        // Operators entered these credentials: removing a tenant from a prod stage by mistake must not delete them.
        removalPolicy: kind === 'prod' ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
      });
      Validations.of(secret).acknowledge({
        id: 'AwsSolutions-SMG4',
        reason:
          'The external system has the same secret. Operators rotate both together; two values are valid meanwhile.',
      });
    }
  }

  /** Grants one pattern for all tenants: 20 ARNs would use a third of the maximum size of a role's policies. */
  readableBy(...functions: NodeFunction[]): void {
    this.#allow(functions, ['GetSecretValue'], 'reads');
  }

  /** For the function that stores credentials: an entry is merged into its secret, so it must read the others. */
  changeableBy(changer: NodeFunction): void {
    this.#allow([changer], ['GetSecretValue', 'PutSecretValue', 'UpdateSecretVersionStage'], 'changes');
  }

  #allow(functions: readonly NodeFunction[], actions: readonly string[], does: string): void {
    for (const each of functions) {
      each.allow(
        actions.map((action) => `secretsmanager:${action}`),
        [`arn:${Aws.PARTITION}:secretsmanager:${Aws.REGION}:${Aws.ACCOUNT_ID}:secret:${this.#namePattern}`],
      );
      const shown = `arn:<AWS::Partition>:secretsmanager:<AWS::Region>:<AWS::AccountId>:secret:${this.#namePattern}`;
      Validations.of(each.node.scope ?? this).acknowledge({
        id: `AwsSolutions-IAM5[Resource::${shown}]`,
        reason: `The function serves all tenants of the stage and ${does} their secrets of this one purpose.`,
      });
    }
  }
}
