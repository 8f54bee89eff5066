import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SigningSecrets } from '../../../lambdas/intake/signing-secrets.ts';
import type { SecretsByTenant } from '../../fakes/memory/memory-signing-secrets.ts';

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
        acme: { github: ['the-current-secret', 'the-previous-secret'], servicenow: 'the-only-secret-there-is' },
        globex: { github: ['', 'the-secret-after-an-empty-one'] },
      });
    });
    afterEach(() => opened.close());

    it('returns one secret, or two during a rotation', async () => {
      expect(await opened.secrets.secretsFor('acme', 'servicenow')).toEqual(['the-only-secret-there-is']);
      expect(await opened.secrets.secretsFor('acme', 'github')).toEqual(['the-current-secret', 'the-previous-secret']);
    });

    it('never returns an empty secret, with which anyone could sign', async () => {
      expect(await opened.secrets.secretsFor('globex', 'github')).toEqual(['the-secret-after-an-empty-one']);
    });

    it.each([
      ['github', 'too-short'],
      ['github', ' a-secret-with-a-blank'],
      ['slack', 'a-secret-with-a-line-end\n'],
      ['servicenow', 'whsec_'],
      ['servicenow', 'whsec_!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!'],
      ['servicenow', `whsec_${Buffer.alloc(23, 7).toString('base64')}`],
      ['servicenow', `whsec_${Buffer.alloc(25, 7).toString('base64').replaceAll('=', '')}`],
      ['servicenow', `whsec_${Buffer.alloc(65, 7).toString('base64')}`],
    ] as const)(
      'never gives a malformed or short secret of %s, and still the good one beside it',
      async (source, bad) => {
        await opened.change('acme', { [source]: [bad, 'the-good-secret-beside-it'] });
        opened.advance(MINUTE_MS);
        expect(await opened.secrets.secretsFor('acme', source)).toEqual(['the-good-secret-beside-it']);
        await opened.change('acme', { [source]: bad });
        opened.advance(MINUTE_MS);
        expect(await opened.secrets.secretsFor('acme', source)).toEqual([]);
      },
    );

    it('has none for a source that a tenant does not use', async () => {
      expect(await opened.secrets.secretsFor('globex', 'servicenow')).toEqual([]);
    });

    it.each(['', 'unknown', 'constructor', '__proto__', 'toString'])('has none for the tenant "%s"', async (tenant) => {
      expect(await opened.secrets.secretsFor(tenant, 'github')).toEqual([]);
    });

    it('stops using a removed secret within a minute', async () => {
      await opened.secrets.secretsFor('acme', 'github');
      await opened.change('acme', { github: ['a-new-secret-of-acme'] });
      opened.advance(MINUTE_MS);
      expect(await opened.secrets.secretsFor('acme', 'github')).toEqual(['a-new-secret-of-acme']);
    });
  });
}
