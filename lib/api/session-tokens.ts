import { Validations } from 'aws-cdk-lib';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';
import type { NodeFunction } from '../node-function.ts';

/** The secret that signs the tokens of sessions. The worker makes them, and the function that sessions call opens them. */
export class SessionTokens extends Construct {
  readonly environment: { SESSION_SECRET_ARN: string };

  constructor(scope: Construct, id: string) {
    super(scope, id);
    const secret = new Secret(this, 'SessionSecret', { description: 'Signs the tokens of sessions' });
    Validations.of(secret).acknowledge({
      id: 'AwsSolutions-SMG4',
      reason:
        'Tokens live for hours at most. Replacing it by hand ends the sessions that are at work, and nothing else.',
    });
    this.environment = { SESSION_SECRET_ARN: secret.secretArn };
  }

  allow(to: NodeFunction): void {
    to.allow(['secretsmanager:GetSecretValue'], [this.environment.SESSION_SECRET_ARN]);
  }
}
