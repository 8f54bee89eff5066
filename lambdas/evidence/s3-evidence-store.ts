import { GetObjectCommand, PutObjectCommand, type S3Client, S3ServiceException } from '@aws-sdk/client-s3';
import type { EvidenceStore } from './evidence-store.ts';

const PRECONDITION_FAILED = 412;

export class S3EvidenceStore implements EvidenceStore {
  readonly #client: S3Client;
  readonly #bucket: string;

  constructor(client: S3Client, bucket: string) {
    this.#client = client;
    this.#bucket = bucket;
  }

  async putOnce(key: string, content: Buffer, contentType: string): Promise<boolean> {
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
        }),
      );
      return true;
    } catch (error) {
      if (error instanceof S3ServiceException && error.$metadata.httpStatusCode === PRECONDITION_FAILED) return false;
      throw error;
    }
  }

  async get(key: string): Promise<Buffer> {
    const { Body } = await this.#client.send(new GetObjectCommand({ Bucket: this.#bucket, Key: key }));
    return Buffer.from((await Body?.transformToByteArray()) ?? []);
  }
}
