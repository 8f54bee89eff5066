import { describe, expect, it } from 'vitest';
import { readStageConfig, StageError } from '../../lib/stage-config.ts';

const good = { kind: 'prod', tenants: ['acme'], evidenceRetentionDays: 30 };
const stages = { 'acme-prod': good };

function refusal(stage: unknown, settings: unknown): string {
  try {
    readStageConfig(stage, settings);
  } catch (error) {
    if (error instanceof StageError) return error.message;
  }
  throw new Error('it was taken');
}

it('a stage comes with its name and the defaults of what it leaves out', () => {
  expect(readStageConfig('acme-prod', stages)).toEqual({
    stage: 'acme-prod',
    formerTenants: [],
    workerConcurrency: 50,
    intakeConcurrency: 25,
    accountConcurrency: 1000,
    alarmEmails: [],
    sealConcurrency: 10,
    models: [],
    exports: ['siem', 'artifacts'],
    exportRetentionDays: 365,
    evidenceKeys: [{ name: 'first', algorithm: 'ed25519' }],
    ...good,
  });
});

describe('a bad stage is refused with what to do', () => {
  it.each([undefined, 7, '', 'Acme', 'acme_prod', '-acme', 'acme--prod', 'a'.repeat(41)])('the name %s', (stage) => {
    expect(refusal(stage, stages)).toMatch(/is not a stage name, e\.g\. -c stage=acme-prod/);
  });

  it('a stage that nobody defined: those that are', () => {
    expect(refusal('acme-dev', stages)).toBe(
      'there is no stage "acme-dev"; add it to context.stages in cdk.json (there: acme-prod)',
    );
    expect(refusal('acme-dev', undefined)).toContain('(there: none)');
  });

  it.each([
    ['an unknown kind', { kind: 'production' }, 'kind'],
    ['no tenant', { tenants: [] }, 'tenants'],
    ['a tenant that would break a key', { tenants: ['acme#globex'] }, 'tenants[0]'],
    ['no retention', { evidenceRetentionDays: 0 }, 'evidenceRetentionDays'],
    ['more workers than an account has', { workerConcurrency: 10_000 }, 'workerConcurrency'],
    ['one sealer, where SQS takes no limit below two', { sealConcurrency: 1 }, 'sealConcurrency'],
    ['any model at all', { models: ['*'] }, 'models[0]'],
    ['a setting that does not exist', { evidenceRetentionDayz: 1 }, 'evidenceRetentionDayz'],
  ])('%s: the setting is named', (_what, setting, named) => {
    expect(refusal('acme-prod', { 'acme-prod': { ...good, ...setting } })).toContain(named);
  });

  it('several bad settings: all of them at once', () => {
    const message = refusal('acme-prod', { 'acme-prod': { ...good, kind: 'x', tenants: [] } });
    expect(message).toContain('kind');
    expect(message).toContain('tenants');
  });
});

describe('workers leave concurrency to everything else', () => {
  const taken = (settings: object) => readStageConfig('acme-prod', { 'acme-prod': { ...good, ...settings } });

  it('an account of 1,000 with 25 for each intake function has room for 825 workers, and for no more', () => {
    expect(taken({ workerConcurrency: 825 })).toMatchObject({ workerConcurrency: 825 });
    expect(refusal('acme-prod', { 'acme-prod': { ...good, workerConcurrency: 826 } })).toMatch(
      /there is room for 825 workers; lower workerConcurrency or intakeConcurrency, or have the quota of Lambda raised/,
    );
  });

  it('a new account with a quota of 10 runs a stage that reserves nothing, but not as prod', () => {
    const small = { accountConcurrency: 10, intakeConcurrency: 0, workerConcurrency: 5 };
    expect(taken({ ...small, kind: 'staging' })).toMatchObject(small);
    expect(refusal('acme-prod', { 'acme-prod': { ...good, ...small } })).toContain('a prod stage reserves concurrency');
    const reserving = { ...good, ...small, kind: 'staging', intakeConcurrency: 1 };
    expect(refusal('acme-prod', { 'acme-prod': reserving })).toContain('there is room for 0 workers');
  });
});
