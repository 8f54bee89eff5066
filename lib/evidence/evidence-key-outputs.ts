import { CfnOutput, CustomResource, Stack } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import * as z from 'zod';
import type { FunctionBundles } from '../bundle-functions.ts';
import { NodeFunction, seconds } from '../node-function.ts';
import type { EvidenceBucket } from './evidence-bucket.ts';

const DESCRIBE_TIMEOUT = seconds(30);

/** Puts the public keys of evidence into the outputs of the stack, so that they can be read without the stage's own API. */
export class EvidenceKeyOutputs extends Construct {
  constructor(
    scope: Construct,
    id: string,
    { bundles, evidence }: { bundles: FunctionBundles; evidence: EvidenceBucket },
  ) {
    super(scope, id);
    const describe = new NodeFunction(this, 'Describe', {
      bundles,
      entry: 'evidence/signing/stack-key',
      description: 'Returns the public keys of evidence to CloudFormation',
      schema: z.object({}),
      environment: {},
      timeout: DESCRIBE_TIMEOUT,
    });
    describe.allow(
      ['kms:GetPublicKey'],
      evidence.keys.map(({ keyId }) => keyId),
    );
    // One resource for all keys. CloudFormation accepts responses of 4 KB, and ten keys have less than 3 KB.
    const keys = new CustomResource(this, 'Keys', {
      resourceType: 'Custom::EvidenceKeys',
      serviceToken: describe.functionArn,
      properties: { KeyIds: evidence.keys.map(({ keyId }) => keyId) },
    });
    for (const [index, { name }] of evidence.keys.entries()) {
      const output = (what: string) => `EvidenceKey${name.replaceAll('-', '')}${what}`;
      new CfnOutput(Stack.of(this), output('Pem'), { value: keys.getAttString(`Pem${index}`) });
      new CfnOutput(Stack.of(this), output('Fingerprint'), { value: keys.getAttString(`Fingerprint${index}`) });
    }
  }
}
