import { describe, expect, it } from 'vitest';
import type { SecretDocuments } from '../../../lambdas/setup/secret-documents.ts';

interface Opened {
  /** The secret `connections` of acme contains `{github: {token: 'a'}}`. */
  documents: SecretDocuments;
  close(): Promise<void>;
}

const version = (last: string) => last.padStart(32, '0');

export function describeSecretDocumentsContract(name: string, open: () => Promise<Opened>): void {
  describe(`secret documents in ${name}`, () => {
    it('a staged version is read only after it was published', async () => {
      const { documents, close } = await open();
      const before = await documents.read('acme', 'connections');
      expect(before.entries).toEqual({ github: { token: 'a' } });
      await documents.stage('acme', 'connections', { github: { token: 'b' } }, version('1'));
      expect(await documents.read('acme', 'connections')).toEqual(before);
      expect(await documents.publish('acme', 'connections', version('1'), before.version)).toBe(true);
      expect(await documents.read('acme', 'connections')).toEqual({
        entries: { github: { token: 'b' } },
        version: version('1'),
      });
      await close();
    });

    it('of two changes that read the same version, one is published', async () => {
      const { documents, close } = await open();
      const { version: read } = await documents.read('acme', 'connections');
      await documents.stage('acme', 'connections', { first: {} }, version('1'));
      expect(await documents.publish('acme', 'connections', version('1'), read)).toBe(true);
      await documents.stage('acme', 'connections', { second: {} }, version('2'));
      expect(await documents.publish('acme', 'connections', version('2'), read)).toBe(false);
      expect((await documents.read('acme', 'connections')).entries).toEqual({ first: {} });
      await close();
    });
  });
}
