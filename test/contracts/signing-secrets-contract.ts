import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SigningSecrets } from '../../lambdas/intake/signing-secrets.ts';
import type { SecretsByTenant } from '../fakes/memory-signing-secrets.ts';

export interface OpenSigningSecrets {
  secrets: SigningSecrets;
  change(tenant: string, secrets: Record<string, string | string[]>): Promise<void>;
  advance(byMs: number): void;
  close(): Promise<void>;
}

const MINUTE_MS = 60_000;

export function describeSigningSecretsContract(
  name: string,
  open: (initially: SecretsByTenant) => Promise<OpenSigningSecrets>,
): void {
  describe(`${name} as the signing secrets`, () => {
    let opened: OpenSigningSecrets;
    beforeEach(async () => {
      opened = await open({
        acme: { github: ['current', 'previous'], servicenow: 'only-one' },
        globex: { github: ['', 'after-an-empty-one'] },
      });
    });
    afterEach(() => opened.close());

    it('knows one secret, or two while one is being rotated', async () => {
      expect(await opened.secrets.secretsFor('acme', 'servicenow')).toEqual(['only-one']);
      expect(await opened.secrets.secretsFor('acme', 'github')).toEqual(['current', 'previous']);
    });

    it('never gives an empty secret, with which anyone could sign', async () => {
      expect(await opened.secrets.secretsFor('globex', 'github')).toEqual(['after-an-empty-one']);
    });

    it('has none for a source that a tenant does not use', async () => {
      expect(await opened.secrets.secretsFor('globex', 'servicenow')).toEqual([]);
    });

    it.each(['', 'unknown', 'constructor', '__proto__', 'toString'])('has none for the tenant "%s"', async (tenant) => {
      expect(await opened.secrets.secretsFor(tenant, 'github')).toEqual([]);
    });

    it('gives up a removed secret within a minute', async () => {
      await opened.secrets.secretsFor('acme', 'github');
      await opened.change('acme', { github: ['new'] });
      opened.advance(MINUTE_MS);
      expect(await opened.secrets.secretsFor('acme', 'github')).toEqual(['new']);
    });
  });
}
