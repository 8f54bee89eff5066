import { Aws, RemovalPolicy, Validations } from 'aws-cdk-lib';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';
import { type SecretPurpose, secretName } from '../lambdas/entry/tenant-secrets.ts';
import type { NodeFunction } from './node-function.ts';
import type { StageConfig } from './stage-config.ts';

interface TenantSecretsProps extends StageConfig {
  purpose: SecretPurpose;
  description: string;
  /** The entry of the JSON object that is generated; the others are for the operator to fill in. */
  generatedEntry: string;
}

/** One secret per tenant for one purpose, a JSON object; a function that needs one gets all tenants' of that purpose only. */
export class TenantSecrets extends Construct {
  /** What a function that reads them has in its environment. */
  readonly environment: { STAGE: string; TENANTS: string };
  /** The names of all tenants' secrets. Secrets Manager ends their ARNs with six characters of its own. */
  readonly #namePattern: string;

  constructor(scope: Construct, id: string, props: TenantSecretsProps) {
    super(scope, id);
    const { stage, kind, tenants, purpose, description, generatedEntry } = props;
    this.environment = { STAGE: stage, TENANTS: tenants.join(',') };
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
        // Operators typed these credentials in: removing a tenant from a prod stage by mistake must not delete them.
        removalPolicy: kind === 'prod' ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
      });
      Validations.of(secret).acknowledge({
        id: 'AwsSolutions-SMG4',
        reason:
          'The other side holds the same secret; it is rotated there and here together, with two valid meanwhile.',
      });
    }
  }

  /** One pattern for all tenants: a list of 20 ARNs would take a third of what the policies of a role may hold. */
  readableBy(...functions: NodeFunction[]): void {
    for (const each of functions) {
      each.allow(
        ['secretsmanager:GetSecretValue'],
        [`arn:${Aws.PARTITION}:secretsmanager:${Aws.REGION}:${Aws.ACCOUNT_ID}:secret:${this.#namePattern}`],
      );
      const shown = `arn:<AWS::Partition>:secretsmanager:<AWS::Region>:<AWS::AccountId>:secret:${this.#namePattern}`;
      Validations.of(each.node.scope ?? this).acknowledge({
        id: `AwsSolutions-IAM5[Resource::${shown}]`,
        reason: 'The secrets of one purpose of all tenants of this stage. The function serves all of these tenants.',
      });
    }
  }
}
