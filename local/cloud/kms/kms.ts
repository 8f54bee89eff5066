/** KMS signing keys in one file that only its owner can read. Generated once: evidence signed yesterday still verifies. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNT, AwsError, type JsonService } from '../../aws/aws.ts';
import { replaceFile } from '../durable-file.ts';
import { type Fields, fieldReader, operationOf } from '../request-fields.ts';
import { signDigest, verifyDigest } from './digest-signature.ts';

export interface KeyDefinition {
  id: string;
  arn: string;
  keySpec: string;
  keyUsage: string;
  /** Names with their prefix: `alias/evidence`. */
  aliases?: string[];
}

const MAX_RAW_MESSAGE_BYTES = 4_096;
const SHA_256_BYTES = 32;

/** Symmetric keys exist only to be named (a table's or bucket's encryption); the local host has nothing to encrypt. */
const SYMMETRIC = 'SYMMETRIC_DEFAULT';

interface Scheme {
  algorithm: string;
  generate(): KeyObject;
  sign(message: Buffer, digest: boolean, key: KeyObject): Buffer;
  verify(message: Buffer, digest: boolean, key: KeyObject, signature: Buffer): boolean;
  takesDigest: boolean;
}

const SCHEMES: Record<string, Scheme> = {
  ECC_NIST_EDWARDS25519: {
    algorithm: 'ED25519_SHA_512',
    generate: () => generateKeyPairSync('ed25519').privateKey,
    sign: (message, _digest, key) => sign(null, message, key),
    verify: (message, _digest, key, signature) => verify(null, message, createPublicKey(key), signature),
    takesDigest: false,
  },
  ECC_NIST_P256: {
    algorithm: 'ECDSA_SHA_256',
    generate: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
    sign: (message, digest, key) => (digest ? signDigest(message, key) : sign('sha256', message, key)),
    verify: (message, digest, key, signature) =>
      digest ? verifyDigest(message, key, signature) : verify('sha256', message, createPublicKey(key), signature),
    takesDigest: true,
  },
};

const read = fieldReader({ missing: 'ValidationException', invalid: 'ValidationException' });

interface SigningKey extends KeyDefinition {
  scheme: Scheme;
  privateKey: KeyObject;
}

export class LocalKms implements JsonService {
  readonly #keys: KeyDefinition[];
  readonly #signing = new Map<string, SigningKey>();
  readonly #operations: Record<string, (input: Fields) => Fields> = {
    Sign: (input) => this.#sign(input),
    Verify: (input) => this.#verify(input),
    GetPublicKey: (input) => this.#publicKey(input),
    DescribeKey: (input) => this.#describe(input),
  };

  constructor({ dataFolder, keys }: { dataFolder: string; keys: KeyDefinition[] }) {
    this.#keys = keys;
    const path = join(dataFolder, 'kms-keys.json');
    const stored: Record<string, string> = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
    for (const key of keys) {
      if (key.keySpec === SYMMETRIC) continue;
      const scheme = SCHEMES[key.keySpec];
      if (scheme === undefined || key.keyUsage !== 'SIGN_VERIFY') {
        throw new Error(`${key.arn}: the local KMS has no ${key.keySpec} keys for ${key.keyUsage}`);
      }
      const pem = stored[key.id] ?? String(scheme.generate().export({ type: 'pkcs8', format: 'pem' }));
      stored[key.id] = pem;
      this.#signing.set(key.arn, { ...key, scheme, privateKey: createPrivateKey(pem) });
    }
    replaceFile(path, JSON.stringify(stored, null, 2));
  }

  async call(operation: string, input: Fields): Promise<Fields> {
    return operationOf('KMS', this.#operations, operation)(input);
  }

  #sign(input: Fields): Fields {
    const key = this.#signingKey(input);
    const { message, digest } = messageOf(input, key.scheme);
    const Signature = key.scheme.sign(message, digest, key.privateKey).toString('base64');
    return { KeyId: key.arn, Signature, SigningAlgorithm: key.scheme.algorithm };
  }

  #verify(input: Fields): Fields {
    const key = this.#signingKey(input);
    const { message, digest } = messageOf(input, key.scheme);
    const signature = Buffer.from(read.text(input, 'Signature'), 'base64');
    if (!key.scheme.verify(message, digest, key.privateKey, signature)) {
      throw new AwsError('KMSInvalidSignatureException', 'The signature is not valid for this message and key.');
    }
    return { KeyId: key.arn, SignatureValid: true, SigningAlgorithm: key.scheme.algorithm };
  }

  #publicKey(input: Fields): Fields {
    const { arn, keySpec, keyUsage, scheme, privateKey } = this.#withSecret(this.#find(input));
    return {
      KeyId: arn,
      PublicKey: createPublicKey(privateKey).export({ type: 'spki', format: 'der' }).toString('base64'),
      KeySpec: keySpec,
      CustomerMasterKeySpec: keySpec,
      KeyUsage: keyUsage,
      SigningAlgorithms: [scheme.algorithm],
    };
  }

  #describe(input: Fields): Fields {
    const { id, arn, keySpec, keyUsage } = this.#find(input);
    const scheme = this.#signing.get(arn)?.scheme;
    const KeyMetadata = {
      AWSAccountId: ACCOUNT,
      KeyId: id,
      Arn: arn,
      Enabled: true,
      KeyState: 'Enabled',
      KeyManager: 'CUSTOMER',
      Origin: 'AWS_KMS',
      MultiRegion: false,
      KeySpec: keySpec,
      CustomerMasterKeySpec: keySpec,
      KeyUsage: keyUsage,
      ...(scheme === undefined ? {} : { SigningAlgorithms: [scheme.algorithm] }),
    };
    return { KeyMetadata };
  }

  #find(input: Fields): KeyDefinition {
    const wanted = read.text(input, 'KeyId');
    const alias = wanted.includes(':alias/') ? wanted.slice(wanted.indexOf('alias/')) : wanted;
    const key = this.#keys.find(({ id, arn, aliases }) => id === wanted || arn === wanted || aliases?.includes(alias));
    if (key === undefined) throw new AwsError('NotFoundException', `Key '${wanted}' does not exist`);
    return key;
  }

  #withSecret({ arn, keySpec }: KeyDefinition): SigningKey {
    const key = this.#signing.get(arn);
    if (key === undefined) throw new AwsError('UnsupportedOperationException', `${arn} is a ${keySpec} key.`);
    return key;
  }

  #signingKey(input: Fields): SigningKey {
    const key = this.#withSecret(this.#find(input));
    const algorithm = read.text(input, 'SigningAlgorithm');
    if (algorithm !== key.scheme.algorithm) {
      const message = `Algorithm ${algorithm} is incompatible with key spec ${key.keySpec}.`;
      throw new AwsError('InvalidKeyUsageException', message);
    }
    return key;
  }
}

function messageOf(input: Fields, { algorithm, takesDigest }: Scheme): { message: Buffer; digest: boolean } {
  const type = read.optionalText(input, 'MessageType') ?? 'RAW';
  const message = Buffer.from(read.text(input, 'Message'), 'base64');
  if (type === 'RAW') {
    if (message.length > MAX_RAW_MESSAGE_BYTES) {
      const limit = `Member must have length less than or equal to ${MAX_RAW_MESSAGE_BYTES}`;
      throw new AwsError('ValidationException', `Value at 'message' failed to satisfy constraint: ${limit}`);
    }
    return { message, digest: false };
  }
  if (type !== 'DIGEST' || !takesDigest) {
    throw new AwsError('ValidationException', `MessageType ${type} is not valid with ${algorithm}.`);
  }
  if (message.length !== SHA_256_BYTES) {
    throw new AwsError('ValidationException', `Digest is invalid length for algorithm ${algorithm}.`);
  }
  return { message, digest: true };
}
