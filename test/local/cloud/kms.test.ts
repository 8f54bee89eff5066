import { createHash, createPublicKey, verify } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import {
  DescribeKeyCommand,
  GetPublicKeyCommand,
  KMSClient,
  SignCommand,
  type SignCommandInput,
  VerifyCommand,
} from '@aws-sdk/client-kms';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type KeyDefinition, LocalKms } from '../../../local/cloud/kms/kms.ts';
import { openWire, temporaryFolder, type Wire } from './wire.ts';

const key = (id: string, keySpec: string, keyUsage = 'SIGN_VERIFY'): KeyDefinition => ({
  id,
  arn: `arn:aws:kms:us-east-1:000000000000:key/${id}`,
  keySpec,
  keyUsage,
  aliases: [`alias/${id}`],
});
const edwards = key('edwards', 'ECC_NIST_EDWARDS25519');
const p256 = key('p256', 'ECC_NIST_P256');
const keys = [edwards, p256, key('table', 'SYMMETRIC_DEFAULT', 'ENCRYPT_DECRYPT')];
const message = Buffer.from('the head of the chain');
const digest = createHash('sha256').update(message).digest();

describe('the local KMS, seen through the AWS SDK', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let wire: Wire;
  let client: KMSClient;

  async function open(): Promise<void> {
    wire = await openWire({ json: { TrentService: new LocalKms({ dataFolder: folder.path, keys }) } });
    client = new KMSClient(wire.client);
  }
  async function close(): Promise<void> {
    client.destroy();
    await wire.close();
  }
  beforeEach(async () => {
    folder = temporaryFolder();
    await open();
  });
  afterEach(async () => {
    await close();
    folder.remove();
  });

  const withEdwards = { KeyId: edwards.arn, Message: message, SigningAlgorithm: 'ED25519_SHA_512' } as const;
  const withP256 = { KeyId: p256.arn, Message: message, SigningAlgorithm: 'ECDSA_SHA_256' } as const;
  const sign = async (input: SignCommandInput) =>
    (await client.send(new SignCommand(input))).Signature ?? new Uint8Array();
  const publicKey = async (KeyId: string) => {
    const { PublicKey } = await client.send(new GetPublicKeyCommand({ KeyId }));
    return createPublicKey({ key: Buffer.from(PublicKey ?? []), format: 'der', type: 'spki' });
  };

  it('signs so that anyone with the public key can verify it offline', async () => {
    expect(verify(null, message, await publicKey(edwards.id), await sign(withEdwards))).toBe(true);
    const der = await sign({ ...withP256, KeyId: 'alias/p256' });
    expect(verify('sha256', message, await publicKey(p256.arn), der)).toBe(true);
  });

  it('signs a digest like the message it was made from', async () => {
    for (let round = 0; round < 20; round++) {
      const signature = await sign({ ...withP256, Message: digest, MessageType: 'DIGEST' });
      expect(verify('sha256', message, await publicKey(p256.arn), signature)).toBe(true);
      const checked = client.send(new VerifyCommand({ ...withP256, Signature: signature }));
      expect((await checked).SignatureValid).toBe(true);
    }
    const ofMessage = await sign(withP256);
    const asDigest = { ...withP256, Message: digest, MessageType: 'DIGEST' as const, Signature: ofMessage };
    expect((await client.send(new VerifyCommand(asDigest))).SignatureValid).toBe(true);
  });

  it('refuses a signature of something else', async () => {
    const other = Buffer.from('another head');
    const forged = client.send(
      new VerifyCommand({ ...withEdwards, Message: other, Signature: await sign(withEdwards) }),
    );
    await expect(forged).rejects.toMatchObject({ name: 'KMSInvalidSignatureException' });
    const otherDigest = createHash('sha256').update(other).digest();
    const Signature = await sign(withP256);
    const swapped = new VerifyCommand({ ...withP256, Message: otherDigest, MessageType: 'DIGEST', Signature });
    await expect(client.send(swapped)).rejects.toMatchObject({ name: 'KMSInvalidSignatureException' });
    const garbage = new VerifyCommand({ ...withP256, Message: digest, MessageType: 'DIGEST', Signature: message });
    await expect(client.send(garbage)).rejects.toMatchObject({ name: 'KMSInvalidSignatureException' });
  });

  it('refuses what KMS refuses: long messages, digests and algorithms that do not fit, unknown keys', async () => {
    const long = sign({ ...withEdwards, Message: Buffer.alloc(4_097) });
    await expect(long).rejects.toMatchObject({ name: 'ValidationException' });
    await sign({ ...withEdwards, Message: Buffer.alloc(4_096) });
    await expect(sign({ ...withEdwards, MessageType: 'DIGEST' })).rejects.toMatchObject({
      name: 'ValidationException',
    });
    await expect(sign({ ...withP256, MessageType: 'DIGEST' })).rejects.toMatchObject({ name: 'ValidationException' });
    const wrong = sign({ ...withP256, SigningAlgorithm: 'ED25519_SHA_512' });
    await expect(wrong).rejects.toMatchObject({ name: 'InvalidKeyUsageException' });
    await expect(sign({ ...withP256, KeyId: 'nobody' })).rejects.toMatchObject({ name: 'NotFoundException' });
    await expect(sign({ ...withP256, KeyId: 'table' })).rejects.toMatchObject({
      name: 'UnsupportedOperationException',
    });
  });

  it('keeps its keys when opened again, in a file only its owner reads', async () => {
    const signature = await sign(withEdwards);
    await close();
    await open();
    expect(verify(null, message, await publicKey(edwards.arn), signature)).toBe(true);
    expect(statSync(join(folder.path, 'kms-keys.json')).mode & 0o777).toBe(0o600);
  });

  it('describes a key', async () => {
    const { KeyMetadata } = await client.send(new DescribeKeyCommand({ KeyId: edwards.id }));
    expect(KeyMetadata).toMatchObject({
      Arn: edwards.arn,
      SigningAlgorithms: ['ED25519_SHA_512'],
      KeyState: 'Enabled',
    });
  });

  it('refuses at the start a key it cannot make', () => {
    const rsa = [key('rsa', 'RSA_2048')];
    expect(() => new LocalKms({ dataFolder: folder.path, keys: rsa })).toThrow(/RSA_2048/);
  });
});
