import { GetObjectCommand, PutObjectCommand, type S3Client, S3ServiceException } from '@aws-sdk/client-s3';
import type { OutputArchive } from './output-store.ts';

const NOT_FOUND = 404;
/** Without the right to list the bucket, S3 responds like this for an object that does not exist. */
const FORBIDDEN = 403;
const PRECONDITION_FAILED = 412;
const RANGE_NOT_SATISFIABLE = 416;

export class S3OutputArchive implements OutputArchive {
  readonly #client: S3Client;
  readonly #bucket: string;

  constructor(client: S3Client, bucket: string) {
    this.#client = client;
    this.#bucket = bucket;
  }

  async putOnce(key: string, content: Buffer): Promise<void> {
    await this.#client
      .send(
        new PutObjectCommand({
          Bucket: this.#bucket,
          Key: key,
          Body: content,
          ContentType: 'application/x-ndjson',
          IfNoneMatch: '*',
          ChecksumAlgorithm: 'SHA256',
        }),
      )
      .catch((error: unknown) => {
        if (statusOf(error) !== PRECONDITION_FAILED) throw error;
      });
  }

  async read(key: string, from: number, to: number): Promise<Buffer | undefined> {
    try {
      const { Body } = await this.#client.send(
        new GetObjectCommand({ Bucket: this.#bucket, Key: key, Range: `bytes=${from}-${to - 1}` }),
      );
      return Buffer.from((await Body?.transformToByteArray()) ?? []);
    } catch (error) {
      const status = statusOf(error);
      if (status === RANGE_NOT_SATISFIABLE) return Buffer.alloc(0);
      if (status === NOT_FOUND || status === FORBIDDEN) return undefined;
      throw error;
    }
  }
}

const statusOf = (error: unknown) => (error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined);
