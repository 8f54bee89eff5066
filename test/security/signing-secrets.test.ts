import type { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { expect, it } from 'vitest';
import { LOGGED } from '../../lambdas/entry/environment.ts';
import { SecretsSigningSecrets } from '../../lambdas/intake/secrets-signing-secrets.ts';
import { checkSecrets } from '../../lambdas/intake/signing-secrets.ts';
import { localSecretValue } from '../../local/host/seed.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';

const GOOD = 'a-good-secret-of-github';
const holding = (document: object) =>
  ({ send: async () => ({ SecretString: JSON.stringify(document) }) }) as unknown as SecretsManagerClient;

it('a malformed secret beside a valid one is logged as an error with its position; neither is quoted', async () => {
  const log = new MemoryLog();
  const document = { github: [GOOD, 'canary'], servicenow: ['whsec_canary!'], gihub: ['canary-of-a-misspelt-name'] };
  const secrets = new SecretsSigningSecrets(holding(document), { acme: 'arn' }, Date.now, log);
  expect(await secrets.secretsFor('acme', 'github')).toEqual([GOOD]);
  expect(log.lines).toEqual([
    expect.objectContaining({
      level: 'error',
      message: LOGGED.secretNotUsed,
      details: { tenant: 'acme', source: 'github', position: 2, problem: 'it has 6 bytes; at least 16 are needed' },
    }),
    expect.objectContaining({ details: expect.objectContaining({ source: 'servicenow', position: 1 }) }),
    expect.objectContaining({ details: expect.objectContaining({ source: 'gihub', position: 1 }) }),
  ]);
  expect(JSON.stringify(log.lines)).not.toContain('canary');
  expect(JSON.stringify(log.lines)).not.toContain(GOOD);
});

it('the secrets of the local host can be used', () => {
  for (const tenant of ['acme', 'globex']) {
    const document = JSON.parse(localSecretValue(`countersign/local/${tenant}/webhook-signing`) ?? '{}');
    expect(checkSecrets(document)).toEqual({ usable: document, problems: [] });
  }
});
