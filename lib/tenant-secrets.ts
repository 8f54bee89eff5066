import { Validations } from 'aws-cdk-lib';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';
import type { NodeFunction } from './node-function.ts';
import type { StageConfig } from './stage-config.ts';

interface TenantSecretsProps extends StageConfig {
  /** The last part of the secrets' names. */
  purpose: string;
  description: string;
  /** The entry of the JSON object that is generated; the others are for the operator to fill in. */
  generatedEntry: string;
}

/** One secret per tenant for one purpose, a JSON object; a function that needs one gets all tenants' of that purpose only. */
export class TenantSecrets extends Construct {
  readonly #byTenant: Record<string, Secret>;

  constructor(
    scope: Construct,
    id: string,
    { stage, tenants, purpose, description, generatedEntry }: TenantSecretsProps,
  ) {
    super(scope, id);
    this.#byTenant = Object.fromEntries(
      tenants.map((tenant) => {
        const secret = new Secret(this, tenant, {
          secretName: `countersign/${stage}/${tenant}/${purpose}`,
          description: `${description} (${tenant})`,
          generateSecretString: {
            secretStringTemplate: '{}',
            generateStringKey: generatedEntry,
            excludePunctuation: true,
          },
        });
        Validations.of(secret).acknowledge({
          id: 'AwsSolutions-SMG4',
          reason:
            'The other side holds the same secret; it is rotated there and here together, with two valid meanwhile.',
        });
        return [tenant, secret];
      }),
    );
  }

  readableBy(...functions: NodeFunction[]): void {
    const arns = Object.values(this.#byTenant).map((secret) => secret.secretArn);
    for (const each of functions) each.allow(['secretsmanager:GetSecretValue'], arns);
  }

  /** What the environment of a function that reads them needs: tenant → ARN, as JSON. */
  arnsByTenant(): string {
    return JSON.stringify(Object.fromEntries(Object.entries(this.#byTenant).map(([t, s]) => [t, s.secretArn])));
  }
}
