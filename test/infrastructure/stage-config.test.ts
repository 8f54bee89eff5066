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
