import { Validations } from 'aws-cdk-lib';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';
import type { NodeFunction } from '../node-function.ts';

/** The secret that signs the cursors of paged lists. */
export class ListCursors extends Construct {
  readonly environment: { CURSOR_SECRET_ARN: string };

  constructor(scope: Construct, id: string) {
    super(scope, id);
    const secret = new Secret(this, 'CursorSecret', { description: 'Signs the cursors of lists' });
    Validations.of(secret).acknowledge({
      id: 'AwsSolutions-SMG4',
      reason: 'It only prevents invented cursors. Replacing it by hand only restarts lists that are being paged.',
    });
    this.environment = { CURSOR_SECRET_ARN: secret.secretArn };
  }

  allow(to: NodeFunction): void {
    to.allow(['secretsmanager:GetSecretValue'], [this.environment.CURSOR_SECRET_ARN]);
  }
}
