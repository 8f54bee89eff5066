import { createPublicKey } from 'node:crypto';
import { GetPublicKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import { S3EvidenceStore } from '../../lambdas/evidence/s3-evidence-store.ts';
import { KmsSigner } from '../../lambdas/evidence/signing/kms-signer.ts';
import { LocalKms } from '../../local/cloud/kms.ts';
import { LocalS3 } from '../../local/cloud/s3.ts';
import { HostClock } from '../../local/host/clock.ts';
import { MemoryEvidenceStore } from '../fakes/memory/memory-evidence-store.ts';
import { SeededSigner } from '../fakes/seeded-signer.ts';
import { openWire, temporaryFolder } from '../local/cloud/wire.ts';
import { describeEvidenceStoreContract } from './evidence-store-contract.ts';
import { describeSignerContract } from './signer-contract.ts';

const close = async () => {};

describeEvidenceStoreContract('memory', async () => ({ store: new MemoryEvidenceStore(), close }));
describeEvidenceStoreContract('S3 with Object Lock', async () => {
  const folder = temporaryFolder();
  const clock = new HostClock(folder.path);
  const locked = { mode: 'COMPLIANCE', days: 1 } as const;
  const s3 = new LocalS3({
    dataFolder: folder.path,
    clock,
    buckets: [{ name: 'evidence', versioned: true, defaultRetention: locked }],
  });
  const wire = await openWire({ s3 });
  const client = new S3Client({ ...wire.client, forcePathStyle: true });
  return {
    store: new S3EvidenceStore(client, 'evidence', { random: () => 0, sleep: async () => {} }),
    close: async () => {
      client.destroy();
      await wire.close();
      s3.close();
      clock.stop();
      folder.remove();
    },
  };
});

describeSignerContract('a seeded key', async () => {
  const signer = new SeededSigner();
  return { signer, publicKey: signer.publicKey, keyId: signer.keyId, close };
});
describeSignerContract('KMS', async () => {
  const folder = temporaryFolder();
  const arn = 'arn:aws:kms:us-east-1:000000000000:key/evidence';
  const key = { id: 'evidence', arn, keySpec: 'ECC_NIST_EDWARDS25519', keyUsage: 'SIGN_VERIFY' };
  const wire = await openWire({ json: { TrentService: new LocalKms({ dataFolder: folder.path, keys: [key] }) } });
  const client = new KMSClient(wire.client);
  const { PublicKey } = await client.send(new GetPublicKeyCommand({ KeyId: arn }));
  return {
    signer: new KmsSigner(client, {
      SIGNING_KEY_ARN: arn,
      SIGNING_ALGORITHM: 'ED25519_SHA_512',
      EVIDENCE_KEYS: [{ keyId: arn, validUntil: null }],
    }),
    publicKey: createPublicKey({ key: Buffer.from(PublicKey ?? []), format: 'der', type: 'spki' }),
    keyId: arn,
    close: async () => {
      client.destroy();
      await wire.close();
      folder.remove();
    },
  };
});
