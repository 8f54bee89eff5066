import { describe, expect, it } from 'vitest';
import { countersignApp } from '../../lib/app.ts';
import { readStageConfig, StageError } from '../../lib/stage-config.ts';

const good = { kind: 'prod', tenants: ['acme'], evidenceRetentionDays: 30 };
const stages = { 'acme-prod': good };

const ISSUER = { name: 'acme', issuer: 'https://login.example.com', audience: 'countersign', tenant: 'acme' };

const CERTIFICATE = 'arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012';
const DOMAIN = { name: 'countersign.example.com', certificateArn: CERTIFICATE };
const NETWORK = { id: 'vpc-12345678', subnetIds: ['subnet-12345678'], securityGroupIds: ['sg-12345678'] };

function refusal(stage: unknown, settings: unknown): string {
  try {
    readStageConfig(stage, settings);
  } catch (error) {
    if (error instanceof StageError) return error.message;
  }
  throw new Error('the stage was accepted');
}

it('a stage has its name and the default of each missing setting', () => {
  expect(readStageConfig('acme-prod', stages)).toEqual({
    stage: 'acme-prod',
    formerTenants: [],
    liveFeed: true,
    logLevel: 'INFO',
    traces: 'off',
    issuers: [],
    console: true,
    features: {},
    workerConcurrency: 50,
    intakeConcurrency: 25,
    accountConcurrency: 1000,
    alarmEmails: [],
    alarmUrls: [],
    runbookUrl: 'RUNBOOK.md',
    sealConcurrency: 10,
    sealWindowSeconds: 20,
    models: [],
    exports: ['siem', 'artifacts'],
    exportRetentionDays: 365,
    evidenceKeys: [{ name: 'first', algorithm: 'ed25519' }],
    ...good,
  });
});

describe('the parts of a stage', () => {
  const app = (settings: object, part?: string) => () =>
    countersignApp({ stage: 'edge', part, context: { stages: { edge: { ...good, ...settings } } } });

  it('a firewall without a web ACL: the message has the command that creates one', () => {
    expect(app({ domain: DOMAIN, firewall: {} })).toThrow('npx cdk deploy -c stage=edge -c part=firewall');
  });

  it('the firewall of a stage that has none, and an unknown part', () => {
    expect(app({}, 'firewall')).toThrow('add "firewall": {} to its settings');
    expect(app({}, 'console')).toThrow('"console" is not a part of a stage');
  });
});

describe('an invalid stage is rejected with an instruction', () => {
  it.each([undefined, 7, '', 'Acme', 'acme_prod', '-acme', 'acme--prod', 'a'.repeat(41)])('the name %s', (stage) => {
    expect(refusal(stage, stages)).toMatch(/is not a stage name, e\.g\. -c stage=acme-prod/);
  });

  it('an unknown stage: the message lists the known ones', () => {
    expect(refusal('acme-dev', stages)).toBe(
      'there is no stage "acme-dev"; add it to context.stages in cdk.json, which has: acme-prod',
    );
    expect(refusal('acme-dev', undefined)).toContain('which has: none');
  });

  it.each([
    ['an unknown kind', { kind: 'production' }, 'kind'],
    ['no tenant', { tenants: [] }, 'tenants'],
    ['a tenant that would break a key', { tenants: ['acme#globex'] }, 'tenants[0]'],
    ['no retention', { evidenceRetentionDays: 0 }, 'evidenceRetentionDays'],
    ['more workers than an account has', { workerConcurrency: 10_000 }, 'workerConcurrency'],
    ['one sealer, where SQS allows no limit below two', { sealConcurrency: 1 }, 'sealConcurrency'],
    ['a wildcard as model', { models: ['*'] }, 'models[0]'],
    ['an issuer without TLS', { issuers: [{ ...ISSUER, issuer: 'http://login.example.com' }] }, 'issuers[0].issuer'],
    ['an issuer with a query', { issuers: [{ ...ISSUER, issuer: 'https://a.example?b' }] }, 'issuers[0].issuer'],
    ['the local issuer in prod', { issuers: [{ ...ISSUER, issuer: '{url}/_oidc' }] }, 'issuers[0].issuer'],
    ['an issuer without audience', { issuers: [{ ...ISSUER, audience: '' }] }, 'issuers[0].audience'],
    ['an issuer of another tenant', { issuers: [{ ...ISSUER, tenant: 'acne' }] }, 'did you mean "acme"?'],
    ['two issuers with one name', { issuers: [ISSUER, { ...ISSUER, audience: 'other' }] }, 'issuers[1]'],
    ['one token for two tenants', { issuers: [ISSUER, { ...ISSUER, name: 'other' }] }, 'issuers[1]'],
    ['an unencrypted collector', { traces: { url: 'http://collector.example.com/v1/traces' } }, 'use an https URL'],
    ['a collector with a password', { traces: { url: 'https://user:password@c.example.com/' } }, 'use secretHeaders'],
    ['a trace URL without the trace', { traceUrl: 'https://traces.example.com' }, 'an https URL with {traceId}'],
    ['a domain name with a protocol', { domain: { ...DOMAIN, name: 'https://a.example.com' } }, 'domain.name'],
    [
      'a certificate of another region',
      { domain: { ...DOMAIN, certificateArn: CERTIFICATE.replace('us-east-1', 'eu-west-1') } },
      'us-east-1',
    ],
    [
      'a zone of another domain',
      { domain: { ...DOMAIN, hostedZone: { id: 'Z1', name: 'other.com' } } },
      'is not in the zone other.com',
    ],
    ['a domain without the console', { domain: DOMAIN, console: false }, 'set console to true'],
    ['a firewall without a domain', { firewall: {} }, 'the firewall needs a domain name'],
    [
      'a web ACL of a region',
      { domain: DOMAIN, firewall: { webAclArn: 'arn:aws:wafv2:eu-west-1:1:regional/x' } },
      'CLOUDFRONT',
    ],
    ['a subnet that is none', { vpc: { ...NETWORK, subnetIds: ['sg-12345678'] } }, 'vpc.subnetIds[0]'],
    [
      'endpoints in more subnets than a region has zones',
      {
        vpc: {
          ...NETWORK,
          subnetIds: Array.from({ length: 7 }, (_, at) => `subnet-1234567${at}`),
          ...{ endpoints: true, routeTableIds: ['rtb-12345678'] },
        },
      },
      'at most 6 subnets, each in another availability zone',
    ],
    [
      'more origins of issuers than a header of CloudFront has room for',
      {
        issuers: Array.from({ length: 13 }, (_, at) => ({
          ...{ name: `i${at}`, audience: 'a', tenant: 'acme' },
          issuer: `https://${'login-of-a-company-with-a-name-of-many-letters-'.repeat(2)}.example-${at}.com`,
        })),
      },
      'do not fit into the content security policy',
    ],
    ['endpoints without route tables', { vpc: { ...NETWORK, endpoints: true } }, 'vpc.routeTableIds'],
    ['a setting that does not exist', { evidenceRetentionDayz: 1 }, 'evidenceRetentionDayz'],
  ])('%s: the message names the setting', (_what, setting, named) => {
    expect(refusal('acme-prod', { 'acme-prod': { ...good, ...setting } })).toContain(named);
  });

  it('several invalid settings: the message names all of them', () => {
    const message = refusal('acme-prod', { 'acme-prod': { ...good, kind: 'x', tenants: [] } });
    expect(message).toContain('kind');
    expect(message).toContain('tenants');
  });
});

describe('workers leave concurrency for the other functions', () => {
  const accepted = (settings: object) => readStageConfig('acme-prod', { 'acme-prod': { ...good, ...settings } });

  it('an account of 1,000 with 25 for each intake function allows 775 workers and no more', () => {
    expect(accepted({ workerConcurrency: 775 })).toMatchObject({ workerConcurrency: 775 });
    expect(refusal('acme-prod', { 'acme-prod': { ...good, workerConcurrency: 776 } })).toMatch(
      /776 is more than .* allow \(775\); lower workerConcurrency or intakeConcurrency, or have the Lambda quota raised/,
    );
  });

  it('a new account with a quota of 10 runs a stage that reserves nothing, but not as prod', () => {
    const small = { accountConcurrency: 10, intakeConcurrency: 0, workerConcurrency: 5 };
    expect(accepted({ ...small, kind: 'staging' })).toMatchObject(small);
    expect(refusal('acme-prod', { 'acme-prod': { ...good, ...small } })).toContain('a prod stage must reserve');
    const reserving = { ...good, ...small, kind: 'staging', intakeConcurrency: 1 };
    expect(refusal('acme-prod', { 'acme-prod': reserving })).toContain('allow (0)');
  });
});
