import { describe, expect, it } from 'vitest';
import { readStageConfig, StageError } from '../../lib/stage-config.ts';

const good = { kind: 'prod', tenants: ['acme'], evidenceRetentionDays: 30 };
const stages = { 'acme-prod': good };

const ISSUER = { name: 'acme', issuer: 'https://login.example.com', audience: 'countersign', tenant: 'acme' };

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
    issuers: [],
    console: true,
    workerConcurrency: 50,
    intakeConcurrency: 25,
    accountConcurrency: 1000,
    alarmEmails: [],
    alarmUrls: [],
    runbookUrl: 'RUNBOOK.md',
    sealConcurrency: 10,
    models: [],
    exports: ['siem', 'artifacts'],
    exportRetentionDays: 365,
    evidenceKeys: [{ name: 'first', algorithm: 'ed25519' }],
    ...good,
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
