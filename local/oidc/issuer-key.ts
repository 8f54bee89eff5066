import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import { writePrivateFile } from '../host/private-files.ts';

const ALGORITHM = 'ES256';

export interface IssuerKey {
  algorithm: typeof ALGORITHM;
  keyId: string;
  privateKey: Awaited<ReturnType<typeof importJWK>>;
  /** As the key set publishes it. */
  publicJwk: JWK;
}

/** The key of the local issuer. It is stored, so that tokens stay valid after a restart. */
export async function issuerKey(dataFolder: string): Promise<IssuerKey> {
  const file = join(dataFolder, 'oidc-key.json');
  if (!existsSync(file)) {
    const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
    writePrivateFile(file, JSON.stringify(await exportJWK(privateKey)));
  }
  const { d, ...publicPart }: JWK = JSON.parse(readFileSync(file, 'utf8'));
  const keyId = await calculateJwkThumbprint(publicPart);
  return {
    algorithm: ALGORITHM,
    keyId,
    privateKey: await importJWK({ ...publicPart, d }, ALGORITHM),
    publicJwk: { ...publicPart, kid: keyId, alg: ALGORITHM, use: 'sig' },
  };
}
