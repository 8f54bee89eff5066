import { GetObjectCommand, PutObjectCommand, type S3Client, S3ServiceException } from '@aws-sdk/client-s3';
import type { Pause } from '../run/dynamo/dynamo-transactions.ts';
import type { EvidenceStore, FindingStore, ObjectPart } from './evidence-store.ts';

const PRECONDITION_FAILED = 412;
/** S3 responds so for an object that does not exist, because functions may not list the bucket. */
const FORBIDDEN = 403;
const NOT_FOUND = 404;
/** Another request for the same key is open: only another attempt shows whether it won. */
const CONDITIONAL_REQUEST_CONFLICT = 409;
const CONFLICT_ATTEMPTS_MAX = 6;
const CONFLICT_BACKOFF_MS = 50;

export class S3EvidenceStore implements EvidenceStore, FindingStore {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #pause: Pause;
  readonly #encryptionKey: string | undefined;

  /** `encryptionKey`: the KMS key that S3 encrypts the objects with; by default a key of S3. */
  constructor(client: S3Client, bucket: string, pause: Pause, { encryptionKey }: { encryptionKey?: string } = {}) {
    this.#encryptionKey = encryptionKey;
    this.#client = client;
    this.#bucket = bucket;
    this.#pause = pause;
  }

  async putOnce(key: string, content: Buffer, contentType: string): Promise<boolean> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#putIfNew(key, content, contentType);
      } catch (error) {
        if (statusOf(error) !== CONDITIONAL_REQUEST_CONFLICT || attempt === CONFLICT_ATTEMPTS_MAX) throw error;
        await this.#pause.sleep(this.#pause.random() * CONFLICT_BACKOFF_MS * 2 ** attempt);
      }
    }
  }

  async #putIfNew(key: string, content: Buffer, contentType: string): Promise<boolean> {
    try {
      await this.#client.send(
        new PutObjectCommand({
          Bucket: this.#bucket,
          Key: key,
          Body: content,
          ContentType: contentType,
          IfNoneMatch: '*',
          // A bucket with Object Lock takes no object without a checksum.
          ChecksumAlgorithm: 'SHA256',
          ...(this.#encryptionKey !== undefined && {
            ServerSideEncryption: 'aws:kms',
            SSEKMSKeyId: this.#encryptionKey,
            // Else S3 would make a request to KMS for each object.
            BucketKeyEnabled: true,
          }),
        }),
      );
      return true;
    } catch (error) {
      if (statusOf(error) === PRECONDITION_FAILED) return false;
      throw error;
    }
  }

  async find(key: string, part?: ObjectPart): Promise<Buffer | undefined> {
    try {
      return await this.get(key, part);
    } catch (error) {
      if ([FORBIDDEN, NOT_FOUND].includes(statusOf(error) ?? 0)) return undefined;
      throw error;
    }
  }

  async get(key: string, part?: ObjectPart): Promise<Buffer> {
    const Range = part && `bytes=${part.offset}-${part.offset + part.sizeBytes - 1}`;
    const { Body } = await this.#client.send(new GetObjectCommand({ Bucket: this.#bucket, Key: key, Range }));
    return Buffer.from((await Body?.transformToByteArray()) ?? []);
  }
}

const statusOf = (error: unknown) => (error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined);
