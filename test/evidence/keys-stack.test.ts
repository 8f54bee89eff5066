import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { App, Stack } from 'aws-cdk-lib';
import { Match, Template } from 'aws-cdk-lib/assertions';
import { expect, it, vi } from 'vitest';
import { EvidenceLog } from '../../lib/evidence-log.ts';
import { EvidenceVault } from '../../lib/evidence-vault.ts';
import { FrontDoor } from '../../lib/front-door.ts';
import { RunTable } from '../../lib/run-table.ts';
import { readStageConfig } from '../../lib/stage-config.ts';

const { context } = JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', 'cdk.json'), 'utf8'));

/** What is deployed of evidence, with these keys. The code of functions is of no concern: any folder will do. */
function deployed(evidenceKeys: object[]): Template {
  const settings = { kind: 'prod', tenants: ['acme'], evidenceRetentionDays: 30, evidenceKeys };
  const config = readStageConfig('acme-prod', { 'acme-prod': settings });
  // What the checks of the CDK find out, `cdk synth` finds out too; here they would take most of the time.
  vi.stubEnv('CDK_VALIDATION', 'false');
  const stack = new Stack(new App({ context }), 'Stack');
  const bundles = () => import.meta.dirname;
  const [runTable, door] = [new RunTable(stack, 'RunTable', config), new FrontDoor(stack, 'FrontDoor')];
  const evidence = new EvidenceVault(stack, 'EvidenceVault', { bundles, runTable, config });
  new EvidenceLog(stack, 'EvidenceLog', { bundles, config, door, runTable, evidence });
  return Template.fromStack(stack);
}

it('a key that was rotated stays, is published, and signs nothing any more', () => {
  const template = deployed([
    { name: 'first', retiredOn: '2026-06-30' },
    { name: 'second', algorithm: 'p256' },
  ]);
  const keys = template.findResources('AWS::KMS::Key', { DeletionPolicy: 'Retain' });
  const idOf = (keySpec: string) =>
    Object.entries(keys).find(([, { Properties }]) => Properties.KeySpec === keySpec)?.[0] ?? '';
  const [former, current] = [idOf('ECC_NIST_EDWARDS25519'), idOf('ECC_NIST_P256')];
  expect(Object.keys(keys).sort()).toEqual([former, current].sort());

  const granted = (action: string) =>
    Object.values(template.findResources('AWS::IAM::Policy'))
      .flatMap(({ Properties }) => Properties.PolicyDocument.Statement)
      .filter(({ Action }) => [Action].flat().includes(action))
      .map(({ Resource }) => [Resource].flat().map((resource) => resource['Fn::GetAtt'][0]));
  expect(granted('kms:Sign')).toEqual([[current], [current]]);
  expect(granted('kms:GetPublicKey').flat().sort()).toEqual([former, current].sort());

  template.resourcePropertiesCountIs(
    'AWS::Lambda::Function',
    { Environment: { Variables: Match.objectLike({ SIGNING_ALGORITHM: 'ECDSA_SHA_256' }) } },
    2,
  );
  template.hasResourceProperties('AWS::Lambda::Function', {
    Environment: {
      Variables: {
        EVIDENCE_KEYS: {
          'Fn::Join': [
            '',
            [
              '[{"keyId":"',
              { 'Fn::GetAtt': [former, 'Arn'] },
              '","validUntil":"2026-06-30"},{"keyId":"',
              { 'Fn::GetAtt': [current, 'Arn'] },
              '","validUntil":null}]',
            ],
          ],
        },
      },
    },
  });
});
