import { createPublicKey, verify } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import {
  DescribeKeyCommand,
  GetPublicKeyCommand,
  KMSClient,
  SignCommand,
  type SignCommandInput,
} from '@aws-sdk/client-kms';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type KeyDefinition, LocalKms } from '../../../local/cloud/kms.ts';
import { openWire, temporaryFolder, type Wire } from './wire.ts';

const key = (id: string, keySpec: string, keyUsage = 'SIGN_VERIFY'): KeyDefinition => ({
  id,
  arn: `arn:aws:kms:us-east-1:000000000000:key/${id}`,
  keySpec,
  keyUsage,
});
const edwards = key('edwards', 'ECC_NIST_EDWARDS25519');
const p256 = key('p256', 'ECC_NIST_P256');
const keys = [edwards, p256];
const message = Buffer.from('the head of the chain');

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

  it('makes signatures that anyone with the public key can verify offline', async () => {
    expect(verify(null, message, await publicKey(edwards.id), await sign(withEdwards))).toBe(true);
    const der = await sign(withP256);
    expect(verify('sha256', message, await publicKey(p256.arn), der)).toBe(true);
  });

  it('refuses long messages, digests, algorithms of another key and unknown keys', async () => {
    const long = sign({ ...withEdwards, Message: Buffer.alloc(4_097) });
    await expect(long).rejects.toMatchObject({ name: 'ValidationException' });
    await sign({ ...withEdwards, Message: Buffer.alloc(4_096) });
    const digest = sign({ ...withP256, MessageType: 'DIGEST' });
    await expect(digest).rejects.toMatchObject({ name: 'ValidationException' });
    const wrong = sign({ ...withP256, SigningAlgorithm: 'ED25519_SHA_512' });
    await expect(wrong).rejects.toMatchObject({ name: 'InvalidKeyUsageException' });
    await expect(sign({ ...withP256, KeyId: 'nobody' })).rejects.toMatchObject({ name: 'NotFoundException' });
  });

  it('keeps its keys across a restart, in a file that only its owner can read', async () => {
    const signature = await sign(withEdwards);
    await close();
    await open();
    expect(verify(null, message, await publicKey(edwards.arn), signature)).toBe(true);
    expect(statSync(join(folder.path, 'kms-keys.json')).mode & 0o777).toBe(0o600);
  });

  it('refuses an operation that it does not support, by name', async () => {
    const describeKey = client.send(new DescribeKeyCommand({ KeyId: edwards.id }));
    await expect(describeKey).rejects.toThrow('does not support DescribeKey');
  });

  it('refuses a key of another kind at the start', () => {
    for (const other of [key('rsa', 'RSA_2048'), key('mac', 'HMAC_256', 'GENERATE_VERIFY_MAC')]) {
      expect(() => new LocalKms({ dataFolder: folder.path, keys: [other] })).toThrow(other.keySpec);
    }
  });

  it('encrypts objects of S3 with a symmetric key, which it keeps across a restart', () => {
    const symmetric = key('values', 'SYMMETRIC_DEFAULT', 'ENCRYPT_DECRYPT');
    const opened = () => new LocalKms({ dataFolder: folder.path, keys: [symmetric] });
    const encrypted = opened().encrypt(symmetric.arn, Buffer.from('a value'));
    expect(encrypted.includes('a value')).toBe(false);
    expect(opened().decrypt(symmetric.arn, encrypted).toString()).toBe('a value');
    encrypted.writeUInt8(encrypted.readUInt8(encrypted.length - 1) ^ 1, encrypted.length - 1);
    expect(() => opened().decrypt(symmetric.arn, encrypted)).toThrow();
    expect(() => opened().decrypt('arn:other', encrypted)).toThrow('does not exist');
  });
});
