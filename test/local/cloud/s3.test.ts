import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type PutObjectCommandInput,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { S3OutputArchive } from '../../../lambdas/agents/s3-output-archive.ts';
import { LocalS3 } from '../../../local/cloud/s3.ts';
import { HostClock } from '../../../local/host/clock.ts';
import { openWire, temporaryFolder, type Wire } from './wire.ts';

const DAY_MS = 86_400_000;

describe('the local S3, seen through the AWS SDK', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let clock: HostClock;
  let s3: LocalS3;
  let wire: Wire;
  let client: S3Client;

  async function open(): Promise<void> {
    s3 = new LocalS3({
      dataFolder: folder.path,
      clock,
      buckets: [
        { name: 'plain', versioned: false },
        { name: 'versioned', versioned: true },
        { name: 'governed', versioned: true, defaultRetention: { mode: 'GOVERNANCE', days: 2 } },
        { name: 'evidence', versioned: true, defaultRetention: { mode: 'COMPLIANCE', days: 10 } },
      ],
    });
    wire = await openWire({ s3 });
    client = new S3Client(wire.client);
  }
  async function close(): Promise<void> {
    client.destroy();
    await wire.close();
    s3.close();
  }
  beforeEach(async () => {
    folder = temporaryFolder();
    clock = new HostClock(folder.path);
    await open();
  });
  afterEach(async () => {
    await close();
    clock.stop();
    folder.remove();
  });

  const put = (Key: string, Body: PutObjectCommandInput['Body'], more: Partial<PutObjectCommandInput> = {}) =>
    client.send(new PutObjectCommand({ Bucket: 'plain', Key, Body, ...more }));
  const get = (Key: string, Bucket = 'plain') => client.send(new GetObjectCommand({ Bucket, Key }));
  const text = async (Key: string, Bucket = 'plain') => (await get(Key, Bucket)).Body?.transformToString();

  it('returns an object with its type, tag and date', async () => {
    const { ETag } = await put('a/b.json', '{"a":1}', { ContentType: 'application/json' });
    const object = await get('a/b.json');
    expect(await object.Body?.transformToString()).toBe('{"a":1}');
    expect(object).toMatchObject({
      ETag,
      ContentType: 'application/json',
      ContentLength: 7,
      LastModified: expect.any(Date),
    });
    expect(ETag).toBe(`"${createHash('md5').update('{"a":1}').digest('hex')}"`);
    const head = await client.send(new HeadObjectCommand({ Bucket: 'plain', Key: 'a/b.json' }));
    expect(head).toMatchObject({ ETag, ContentLength: 7 });
  });

  it('writes once under twenty concurrent puts with If-None-Match: *', async () => {
    const puts = Array.from({ length: 20 }, (_, n) => put('once', `writer ${n}`, { IfNoneMatch: '*' }));
    const results = await Promise.allSettled(puts);
    const winners = results.flatMap((result, n) => (result.status === 'fulfilled' ? [n] : []));
    const refusals = results.filter((result) => result.status === 'rejected').map(({ reason }) => reason.name);
    expect(winners).toHaveLength(1);
    expect(new Set(refusals)).toEqual(new Set(['PreconditionFailed']));
    expect(await text('once')).toBe(`writer ${winners[0]}`);
  });

  it('refuses a body that does not match its checksum', async () => {
    const ChecksumSHA256 = createHash('sha256').update('other').digest('base64');
    await expect(put('x', 'body', { ChecksumSHA256 })).rejects.toMatchObject({ name: 'BadDigest' });
    await expect(put('x', 'body', { ChecksumCRC32: 'AAAAAA==' })).rejects.toMatchObject({ name: 'BadDigest' });
    await expect(get('x')).rejects.toMatchObject({ name: 'NoSuchKey', $metadata: { httpStatusCode: 404 } });
  });

  it('returns a range of an object, and stores output of commands once', async () => {
    const archive = new S3OutputArchive(client, 'plain');
    await archive.putOnce('output/1', Buffer.from('0123456789'));
    await archive.putOnce('output/1', Buffer.from('other'));
    const read = async (from: number, to: number) => (await archive.read('output/1', from, to))?.toString();
    expect([await read(0, 4), await read(4, 100), await read(10, 20)]).toEqual(['0123', '456789', '']);
    expect(await archive.read('output/2', 0, 4)).toBeUndefined();
    const part = await client.send(new GetObjectCommand({ Bucket: 'plain', Key: 'output/1', Range: 'bytes=2-3' }));
    expect(part).toMatchObject({ ContentRange: 'bytes 2-3/10', ContentLength: 2 });
  });

  it('names a missing bucket or object', async () => {
    await expect(get('x', 'nowhere')).rejects.toMatchObject({ name: 'NoSuchBucket' });
    const head = client.send(new HeadObjectCommand({ Bucket: 'plain', Key: 'x' }));
    await expect(head).rejects.toMatchObject({ name: 'NotFound' });
  });

  it('keeps any key inside the data folder, and lists the keys in the order of their bytes', async () => {
    const keys = ['../../escape', '/absolute', 'a/../../b', 'ünï/çødé ✓+&<>?#%', 'x'.repeat(1_024), '.', 'a//b', 'Z'];
    for (const key of keys) {
      await put(key, key);
      expect(await text(key)).toBe(key);
    }
    const { Contents, KeyCount } = await client.send(new ListObjectsV2Command({ Bucket: 'plain' }));
    const byBytes = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(Contents?.map(({ Key }) => Key)).toEqual(byBytes);
    expect(KeyCount).toBe(keys.length);
    expect(existsSync(join(dirname(folder.path), 'escape'))).toBe(false);
  });

  it('deletes the named version of an object', async () => {
    const Bucket = 'versioned';
    const { VersionId } = await put('doc', 'one', { Bucket });
    const remove = (version?: string) =>
      client.send(new DeleteObjectCommand({ Bucket, Key: 'doc', VersionId: version }));
    await remove('another');
    expect(await text('doc', Bucket)).toBe('one');
    await remove(VersionId);
    await expect(get('doc', Bucket)).rejects.toMatchObject({ name: 'NoSuchKey' });
  });

  it.each([
    ['evidence', 'COMPLIANCE', 10],
    ['governed', 'GOVERNANCE', 2],
  ])('deletes no version in the bucket %s before its retention has passed', async (Bucket, mode, days) => {
    const { VersionId } = await put('bundle', 'proof', { Bucket });
    const remove = () => client.send(new DeleteObjectCommand({ Bucket, Key: 'bundle', VersionId }));
    const { ObjectLockMode, ObjectLockRetainUntilDate } = await get('bundle', Bucket);
    expect(ObjectLockMode).toBe(mode);
    expect(ObjectLockRetainUntilDate?.getTime()).toBeGreaterThan(clock.now());
    await expect(remove()).rejects.toMatchObject({ name: 'AccessDenied' });
    clock.advance((days - 1) * DAY_MS);
    await expect(remove()).rejects.toMatchObject({ name: 'AccessDenied' });
    clock.advance(DAY_MS);
    await remove();
    await expect(get('bundle', Bucket)).rejects.toMatchObject({ name: 'NoSuchKey' });
  });

  it('keeps objects, versions and locks across a restart', async () => {
    const Bucket = 'evidence';
    const { VersionId } = await put('x', 'y', { Bucket });
    await close();
    await open();
    expect(await text('x', Bucket)).toBe('y');
    const remove = client.send(new DeleteObjectCommand({ Bucket, Key: 'x', VersionId }));
    await expect(remove).rejects.toMatchObject({ name: 'AccessDenied' });
  });

  it('an object of a bucket without versions is deleted by its key', async () => {
    await put('x', 'one');
    await client.send(new DeleteObjectCommand({ Bucket: 'plain', Key: 'x' }));
    await client.send(new DeleteObjectCommand({ Bucket: 'plain', Key: 'x' }));
    await expect(get('x')).rejects.toMatchObject({ name: 'NoSuchKey' });
  });

  it('refuses what it does not support, by name', async () => {
    await put('x', 'one');
    const refused = async (call: Promise<unknown>, what: string) =>
      expect(call).rejects.toMatchObject({ name: 'NotImplemented', message: expect.stringContaining(what) });
    const Key = 'x';
    await refused(put(Key, 'two'), 'a second version of an object');
    await refused(put('y', 'one', { IfMatch: '"tag"' }), 'the header if-match of PutObject');
    await refused(put('y', 'one', { ObjectLockMode: 'COMPLIANCE' }), 'the header x-amz-object-lock-mode');
    await refused(put('y', 'one', { ContentEncoding: 'aws-chunked' }), 'the header content-encoding');
    await refused(
      client.send(new DeleteObjectCommand({ Bucket: 'versioned', Key })),
      'DeleteObject without a versionId',
    );
    await refused(
      client.send(
        new DeleteObjectCommand({ Bucket: 'evidence', Key, VersionId: '1', BypassGovernanceRetention: true }),
      ),
      'the header x-amz-bypass-governance-retention',
    );
    await refused(client.send(new GetObjectCommand({ Bucket: 'plain', Key, Range: 'bytes=-2' })), 'the range bytes=-2');
    await refused(
      client.send(new ListObjectsV2Command({ Bucket: 'plain', Prefix: 'a' })),
      'the parameter prefix of ListObjectsV2',
    );
    await refused(client.send(new CreateMultipartUploadCommand({ Bucket: 'plain', Key })), 'POST /plain/x');
  });
});
