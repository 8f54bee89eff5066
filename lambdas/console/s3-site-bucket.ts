import { DeleteObjectCommand, ListObjectsV2Command, PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import type { SiteBucket } from './deploy-site.ts';

export class S3SiteBucket implements SiteBucket {
  readonly #client: S3Client;
  readonly #bucket: string;

  constructor(client: S3Client, bucket: string) {
    this.#client = client;
    this.#bucket = bucket;
  }

  async put(key: string, content: Uint8Array, headers: { contentType: string; cacheControl: string }): Promise<void> {
    await this.#client.send(
      new PutObjectCommand({
        Bucket: this.#bucket,
        Key: key,
        Body: content,
        ContentType: headers.contentType,
        CacheControl: headers.cacheControl,
      }),
    );
  }

  async empty(): Promise<void> {
    for (;;) {
      const { Contents = [] } = await this.#client.send(new ListObjectsV2Command({ Bucket: this.#bucket }));
      if (Contents.length === 0) return;
      for (const { Key } of Contents) await this.#client.send(new DeleteObjectCommand({ Bucket: this.#bucket, Key }));
    }
  }
}
