import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { App, Stack } from 'aws-cdk-lib';
import { Match, Template } from 'aws-cdk-lib/assertions';
import { expect, it, vi } from 'vitest';
import { CountersignHttpApi } from '../../../lib/api/http-api.ts';
import { ListCursors } from '../../../lib/api/list-cursors.ts';
import { EvidenceBucket, SEAL_TIMEOUT } from '../../../lib/evidence/evidence-bucket.ts';
import { EvidenceKeyOutputs } from '../../../lib/evidence/evidence-key-outputs.ts';
import { EvidenceLog } from '../../../lib/evidence/evidence-log.ts';
import { RunTable } from '../../../lib/run-table.ts';
import { readStageConfig } from '../../../lib/stage-config.ts';
import { WorkQueue } from '../../../lib/work-queue.ts';

const { context } = JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', '..', 'cdk.json'), 'utf8'));

/** The evidence constructs with these keys. The code of the functions does not matter, so any folder is used. */
function deployed(evidenceKeys: object[], besides: object = {}): Template {
  const settings = { kind: 'prod', tenants: ['acme'], evidenceRetentionDays: 30, evidenceKeys, ...besides };
  const config = readStageConfig('acme-prod', { 'acme-prod': settings });
  // Without the checks of the CDK: `cdk synth` has its own test, and they would take most of the time.
  vi.stubEnv('CDK_VALIDATION', 'false');
  const stack = new Stack(new App({ context }), 'Stack');
  const bundles = () => import.meta.dirname;
  const runTable = new RunTable(stack, 'RunTable', config);
  const httpApi = new CountersignHttpApi(stack, 'HttpApi', {
    bundles,
    config,
    runTable,
    cursors: new ListCursors(stack, 'KeyedRoutes'),
  });
  const sealQueue = new WorkQueue(stack, 'SealQueue', { consumerTimeout: SEAL_TIMEOUT });
  const evidence = new EvidenceBucket(stack, 'EvidenceVault', { bundles, runTable, config, sealQueue });
  new EvidenceKeyOutputs(stack, 'EvidenceKeyOutputs', { bundles, evidence });
  new EvidenceLog(stack, 'EvidenceLog', { bundles, config, httpApi, runTable, evidence });
  return Template.fromStack(stack);
}

it('a rotated key remains and is published, but signs nothing', () => {
  const template = deployed([
    { name: 'first', retiredOn: '2026-06-30' },
    { name: 'second', algorithm: 'p256' },
  ]);
  const keys = template.findResources('AWS::KMS::Key', {
    DeletionPolicy: 'Retain',
    Properties: { KeyUsage: 'SIGN_VERIFY' },
  });
  const idOf = (keySpec: string) =>
    Object.entries(keys).find(([, { Properties }]) => Properties.KeySpec === keySpec)?.[0] ?? '';
  const [former, current] = [idOf('ECC_NIST_EDWARDS25519'), idOf('ECC_NIST_P256')];
  expect(Object.keys(keys).sort()).toEqual([former, current].sort());

  const granted = (action: string) =>
    Object.values(template.findResources('AWS::IAM::Role'))
      .flatMap(({ Properties }) => Properties.Policies)
      .flatMap(({ PolicyDocument }) => PolicyDocument.Statement)
      .filter(({ Action }) => [Action].flat().includes(action))
      .map(({ Resource }) => [Resource].flat().map((resource) => resource['Fn::GetAtt'][0]));
  expect(granted('kms:Sign')).toEqual([[current], [current]]);
  // The functions that sign, publish or output the keys.
  expect(granted('kms:GetPublicKey')).toEqual(Array(4).fill([former, current]));

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

it('the days of a removed tenant are still closed', () => {
  const template = deployed([{ name: 'first' }], { formerTenants: ['globex'] });
  template.hasResourceProperties('AWS::Lambda::Function', {
    Environment: { Variables: Match.objectLike({ TENANTS: '["acme","globex"]' }) },
  });
});

it('every public key and its fingerprint are outputs of the stack', () => {
  const template = deployed([{ name: 'first', retiredOn: '2026-06-30' }, { name: 'second-one' }]);
  const [[id, { Properties }] = ['', { Properties: {} }], ...others] = Object.entries(
    template.findResources('Custom::EvidenceKeys'),
  );
  expect(others).toEqual([]);
  const outputs = Object.entries(template.findOutputs('*')).map(([name, { Value }]) => [name, Value]);
  for (const [index, name] of ['first', 'secondone'].entries()) {
    expect(Properties.KeyIds[index]['Fn::GetAtt'][0]).toMatch(new RegExp(`Key${name}`));
    expect(outputs).toContainEqual([`EvidenceKey${name}Pem`, { 'Fn::GetAtt': [id, `Pem${index}`] }]);
    expect(outputs).toContainEqual([`EvidenceKey${name}Fingerprint`, { 'Fn::GetAtt': [id, `Fingerprint${index}`] }]);
  }
});
