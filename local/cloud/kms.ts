/**
 * KMS keys in one private file. They are generated once, so that evidence signed earlier still verifies, and objects that S3
 * encrypted earlier can be read.
 */
import {
  createCipheriv,
  createDecipheriv,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AwsError, type JsonService } from '../aws/aws.ts';
import { replaceFile } from './durable-file.ts';
import { type Fields, fieldReader, findOperation, type Operation } from './request-fields.ts';

export interface KeyDefinition {
  id: string;
  arn: string;
  keySpec: string;
  keyUsage: string;
}

const MAX_MESSAGE_BYTES = 4_096;

interface Scheme {
  algorithm: string;
  /** The hash function; null if the algorithm includes it. */
  hash: string | null;
  generate(): KeyObject;
}

const SCHEMES: Record<string, Scheme> = {
  ECC_NIST_EDWARDS25519: {
    algorithm: 'ED25519_SHA_512',
    hash: null,
    generate: () => generateKeyPairSync('ed25519').privateKey,
  },
  ECC_NIST_P256: {
    algorithm: 'ECDSA_SHA_256',
    hash: 'sha256',
    generate: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  },
};

const read = fieldReader({ missing: 'ValidationException', invalid: 'ValidationException' });

const SYMMETRIC = { keySpec: 'SYMMETRIC_DEFAULT', keyUsage: 'ENCRYPT_DECRYPT' };
const CIPHER = 'aes-256-gcm';
const [KEY_BYTES, NONCE_BYTES, TAG_BYTES] = [32, 12, 16];

const isSymmetric = ({ keySpec, keyUsage }: KeyDefinition) =>
  keySpec === SYMMETRIC.keySpec && keyUsage === SYMMETRIC.keyUsage;

interface SigningKey extends KeyDefinition {
  scheme: Scheme;
  privateKey: KeyObject;
}

export class LocalKms implements JsonService {
  readonly #keys: SigningKey[];
  /** By ARN. Only S3 uses them, for objects that name one. */
  readonly #symmetric: Map<string, Buffer>;
  readonly #operations: Record<string, Operation<(input: Fields) => Fields>> = {
    Sign: [['KeyId', 'Message', 'MessageType', 'SigningAlgorithm'], (input) => this.#sign(input)],
    GetPublicKey: [['KeyId'], (input) => this.#publicKey(input)],
  };

  constructor({ dataFolder, keys }: { dataFolder: string; keys: KeyDefinition[] }) {
    const path = join(dataFolder, 'kms-keys.json');
    const stored: Record<string, string> = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
    this.#symmetric = new Map(
      keys.filter(isSymmetric).map((key) => {
        const secret = stored[key.id] ?? randomBytes(KEY_BYTES).toString('base64');
        stored[key.id] = secret;
        return [key.arn, Buffer.from(secret, 'base64')];
      }),
    );
    this.#keys = keys
      .filter((key) => !isSymmetric(key))
      .map((key) => {
        const scheme = SCHEMES[key.keySpec];
        if (scheme === undefined || key.keyUsage !== 'SIGN_VERIFY') {
          throw new Error(`${key.arn}: the local KMS does not support ${key.keySpec} keys for ${key.keyUsage}`);
        }
        const pem = stored[key.id] ?? String(scheme.generate().export({ type: 'pkcs8', format: 'pem' }));
        stored[key.id] = pem;
        return { ...key, scheme, privateKey: createPrivateKey(pem) };
      });
    replaceFile(path, JSON.stringify(stored, null, 2));
  }

  encrypt(keyArn: string, content: Uint8Array): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#secret(keyArn), nonce);
    const sealed = Buffer.concat([cipher.update(content), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
  }

  decrypt(keyArn: string, content: Uint8Array): Buffer {
    const decipher = createDecipheriv(CIPHER, this.#secret(keyArn), content.subarray(0, NONCE_BYTES));
    decipher.setAuthTag(content.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([decipher.update(content.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
  }

  #secret(keyArn: string): Buffer {
    const secret = this.#symmetric.get(keyArn);
    if (secret === undefined) throw new AwsError('KMS.NotFoundException', `Key '${keyArn}' does not exist`);
    return secret;
  }

  async call(operation: string, input: Fields): Promise<Fields> {
    return findOperation('KMS', this.#operations, operation, input)(input);
  }

  #sign(input: Fields): Fields {
    const { arn, keySpec, scheme, privateKey } = this.#find(input);
    const algorithm = read.text(input, 'SigningAlgorithm');
    if (algorithm !== scheme.algorithm) {
      const message = `Algorithm ${algorithm} is incompatible with key spec ${keySpec}.`;
      throw new AwsError('InvalidKeyUsageException', message);
    }
    if ((read.optionalText(input, 'MessageType') ?? 'RAW') !== 'RAW') {
      throw new AwsError('ValidationException', 'The local KMS supports only MessageType RAW.');
    }
    const message = Buffer.from(read.text(input, 'Message'), 'base64');
    if (message.length > MAX_MESSAGE_BYTES) {
      const limit = `Member must have length less than or equal to ${MAX_MESSAGE_BYTES}`;
      throw new AwsError('ValidationException', `Value at 'message' failed to satisfy constraint: ${limit}`);
    }
    const Signature = sign(scheme.hash, message, privateKey).toString('base64');
    return { KeyId: arn, Signature, SigningAlgorithm: algorithm };
  }

  #publicKey(input: Fields): Fields {
    const { arn, keySpec, keyUsage, scheme, privateKey } = this.#find(input);
    return {
      KeyId: arn,
      PublicKey: createPublicKey(privateKey).export({ type: 'spki', format: 'der' }).toString('base64'),
      KeySpec: keySpec,
      KeyUsage: keyUsage,
      SigningAlgorithms: [scheme.algorithm],
    };
  }

  #find(input: Fields): SigningKey {
    const wanted = read.text(input, 'KeyId');
    const key = this.#keys.find(({ id, arn }) => id === wanted || arn === wanted);
    if (key === undefined) throw new AwsError('NotFoundException', `Key '${wanted}' does not exist`);
    return key;
  }
}
