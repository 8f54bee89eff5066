import { createHash } from 'node:crypto';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  GetObjectRetentionCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  ListObjectVersionsCommand,
  PutObjectCommand,
  type PutObjectCommandInput,
  PutObjectRetentionCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { decodeAwsChunked, LocalS3, s3Operation } from '../../../local/cloud/s3/s3.ts';
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
        { name: 'plain', objectLock: false, versioned: false },
        { name: 'evidence', objectLock: true, versioned: true },
        { name: 'vault', objectLock: true, versioned: true, defaultRetention: { mode: 'GOVERNANCE', days: 2 } },
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

  it('gives back an object with its type, metadata, tag and date', async () => {
    const { ETag } = await put('a/b.json', '{"a":1}', { ContentType: 'application/json', Metadata: { run: 'r-1' } });
    const object = await get('a/b.json');
    expect(await object.Body?.transformToString()).toBe('{"a":1}');
    expect(object).toMatchObject({
      ETag,
      ContentType: 'application/json',
      ContentLength: 7,
      Metadata: { run: 'r-1' },
      LastModified: expect.any(Date),
    });
    expect(ETag).toBe(`"${createHash('md5').update('{"a":1}').digest('hex')}"`);
    const head = await client.send(new HeadObjectCommand({ Bucket: 'plain', Key: 'a/b.json' }));
    expect(head).toMatchObject({ ETag, ContentLength: 7, Metadata: { run: 'r-1' } });
  });

  it('stores a streamed body without its chunk framing, its trailing checksum verified', async () => {
    const body = Buffer.alloc(200_000, 'stream ');
    await put('streamed', Readable.from([body.subarray(0, 70_000), body.subarray(70_000)]), {
      ContentLength: body.length,
    });
    expect(Buffer.from((await (await get('streamed')).Body?.transformToByteArray()) ?? [])).toEqual(body);
  });

  it('answers a range with that part only', async () => {
    await put('digits', '0123456789');
    const range = async (Range: string) => {
      const part = await client.send(new GetObjectCommand({ Bucket: 'plain', Key: 'digits', Range }));
      return [await part.Body?.transformToString(), part.ContentRange];
    };
    expect(await range('bytes=2-4')).toEqual(['234', 'bytes 2-4/10']);
    expect(await range('bytes=7-')).toEqual(['789', 'bytes 7-9/10']);
    expect(await range('bytes=-2')).toEqual(['89', 'bytes 8-9/10']);
    await expect(range('bytes=10-')).rejects.toMatchObject({ name: 'InvalidRange' });
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

  it('replaces an object only if its tag is the expected one', async () => {
    const { ETag } = await put('state', 'one');
    await put('state', 'two', { IfMatch: ETag });
    await expect(put('state', 'three', { IfMatch: ETag })).rejects.toMatchObject({ name: 'PreconditionFailed' });
    await expect(put('absent', 'x', { IfMatch: ETag })).rejects.toMatchObject({ name: 'NoSuchKey' });
    expect(await text('state')).toBe('two');
    const { ETag: current } = await get('state');
    const unchanged = client.send(new GetObjectCommand({ Bucket: 'plain', Key: 'state', IfNoneMatch: current }));
    await expect(unchanged).rejects.toMatchObject({ $metadata: { httpStatusCode: 304 } });
  });

  it('refuses a body that does not match its checksum', async () => {
    const ChecksumSHA256 = createHash('sha256').update('other').digest('base64');
    await expect(put('x', 'body', { ChecksumSHA256 })).rejects.toMatchObject({ name: 'BadDigest' });
    await expect(put('x', 'body', { ChecksumCRC32: 'AAAAAA==' })).rejects.toMatchObject({ name: 'BadDigest' });
    await expect(get('x')).rejects.toMatchObject({ name: 'NoSuchKey', $metadata: { httpStatusCode: 404 } });
  });

  it('names what is missing', async () => {
    await expect(get('x', 'nowhere')).rejects.toMatchObject({ name: 'NoSuchBucket' });
    const head = client.send(new HeadObjectCommand({ Bucket: 'plain', Key: 'x' }));
    await expect(head).rejects.toMatchObject({ name: 'NotFound' });
    const version = client.send(new GetObjectCommand({ Bucket: 'evidence', Key: 'x', VersionId: 'v' }));
    await expect(version).rejects.toMatchObject({ name: 'NoSuchVersion' });
  });

  it('keeps any key inside the data folder', async () => {
    const keys = ['../../escape', '/absolute', 'a/../../b', 'ünï/çødé ✓+&<>?#%', 'x'.repeat(1_024), '.', 'a//b'];
    for (const key of keys) {
      await put(key, key);
      expect(await text(key)).toBe(key);
    }
    const { Contents } = await client.send(new ListObjectsV2Command({ Bucket: 'plain' }));
    expect(new Set(Contents?.map(({ Key }) => Key))).toEqual(new Set(keys));
    expect(existsSync(join(dirname(folder.path), 'escape'))).toBe(false);
  });

  it('lists by prefix and delimiter, page by page, in the order of the bytes', async () => {
    for (const key of ['b', 'a/1', 'a/2', 'a/3/x', 'a/3/y', 'a/4/z', 'Z']) await put(key, 'x');
    const list = async (more: object) => {
      const page = await client.send(new ListObjectsV2Command({ Bucket: 'plain', ...more }));
      const names = [
        ...(page.Contents ?? []).map(({ Key }) => Key),
        ...(page.CommonPrefixes ?? []).map((c) => c.Prefix),
      ];
      return { names, next: page.NextContinuationToken, count: page.KeyCount };
    };
    expect((await list({})).names).toEqual(['Z', 'a/1', 'a/2', 'a/3/x', 'a/3/y', 'a/4/z', 'b']);
    expect((await list({ Prefix: 'a/', Delimiter: '/' })).names).toEqual(['a/1', 'a/2', 'a/3/', 'a/4/']);
    expect((await list({ StartAfter: 'a/3/x' })).names).toEqual(['a/3/y', 'a/4/z', 'b']);
    const seen: (string | undefined)[] = [];
    let ContinuationToken: string | undefined;
    do {
      const page = await list({ Delimiter: '/', Prefix: 'a/', MaxKeys: 1, ContinuationToken });
      expect(page.count).toBe(1);
      seen.push(...page.names);
      ContinuationToken = page.next;
    } while (ContinuationToken !== undefined);
    expect(seen).toEqual(['a/1', 'a/2', 'a/3/', 'a/4/']);
  });

  it('hides a deleted object behind a marker and keeps its versions', async () => {
    const Bucket = 'evidence';
    const first = await put('doc', 'one', { Bucket });
    await put('doc', 'two', { Bucket });
    const marker = await client.send(new DeleteObjectCommand({ Bucket, Key: 'doc' }));
    expect(marker.DeleteMarker).toBe(true);
    await expect(get('doc', Bucket)).rejects.toMatchObject({ name: 'NoSuchKey' });
    const old = await client.send(new GetObjectCommand({ Bucket, Key: 'doc', VersionId: first.VersionId }));
    expect(await old.Body?.transformToString()).toBe('one');
    expect((await client.send(new ListObjectsV2Command({ Bucket }))).KeyCount).toBe(0);
    const all = await client.send(new ListObjectVersionsCommand({ Bucket, Prefix: 'doc' }));
    expect([all.Versions?.length, all.DeleteMarkers?.length]).toEqual([2, 1]);
    await put('doc', 'three', { Bucket, IfNoneMatch: '*' });
    await client.send(new DeleteObjectCommand({ Bucket: 'plain', Key: 'never there' }));
  });

  it('shows the version before again when the marker itself is deleted', async () => {
    const Bucket = 'evidence';
    await put('doc', 'one', { Bucket });
    const { VersionId } = await client.send(new DeleteObjectCommand({ Bucket, Key: 'doc' }));
    await client.send(new DeleteObjectCommand({ Bucket, Key: 'doc', VersionId }));
    expect(await text('doc', Bucket)).toBe('one');
  });

  it('deletes no locked version before its retention has passed, bypass or not', async () => {
    const Bucket = 'evidence';
    const ObjectLockRetainUntilDate = new Date(clock.now() + 10 * DAY_MS);
    const { VersionId } = await put('bundle', 'proof', {
      Bucket,
      ObjectLockMode: 'COMPLIANCE',
      ObjectLockRetainUntilDate,
    });
    const remove = (BypassGovernanceRetention?: boolean) =>
      client.send(new DeleteObjectCommand({ Bucket, Key: 'bundle', VersionId, BypassGovernanceRetention }));
    await expect(remove()).rejects.toMatchObject({ name: 'AccessDenied' });
    await expect(remove(true)).rejects.toMatchObject({ name: 'AccessDenied' });
    const shorten = new PutObjectRetentionCommand({
      Bucket,
      Key: 'bundle',
      Retention: { Mode: 'COMPLIANCE', RetainUntilDate: new Date(clock.now() + DAY_MS) },
    });
    await expect(client.send(shorten)).rejects.toMatchObject({ name: 'AccessDenied' });
    clock.advance(10 * DAY_MS);
    await remove();
    await expect(get('bundle', Bucket)).rejects.toMatchObject({ name: 'NoSuchKey' });
  });

  it('locks by the default of the bucket, which a declared bypass may lift', async () => {
    const Bucket = 'vault';
    const { VersionId } = await put('x', 'y', { Bucket });
    const { Retention } = await client.send(new GetObjectRetentionCommand({ Bucket, Key: 'x' }));
    expect(Retention?.Mode).toBe('GOVERNANCE');
    const remove = (BypassGovernanceRetention?: boolean) =>
      client.send(new DeleteObjectCommand({ Bucket, Key: 'x', VersionId, BypassGovernanceRetention }));
    await expect(remove()).rejects.toMatchObject({ name: 'AccessDenied' });
    await remove(true);
    const lock = { ObjectLockMode: 'GOVERNANCE', ObjectLockRetainUntilDate: new Date(clock.now() + DAY_MS) } as const;
    await expect(put('x', 'y', lock)).rejects.toMatchObject({ name: 'InvalidRequest' });
  });

  it('keeps objects, versions and locks when opened again, and drops files no object names', async () => {
    const Bucket = 'vault';
    const { VersionId } = await put('x', 'y', { Bucket });
    await put('replaced', 'one');
    await put('replaced', 'two');
    writeFileSync(join(folder.path, 's3', 'left-by-a-crash.tmp'), 'half');
    await close();
    await open();
    expect(await text('replaced')).toBe('two');
    const remove = client.send(new DeleteObjectCommand({ Bucket, Key: 'x', VersionId }));
    await expect(remove).rejects.toMatchObject({ name: 'AccessDenied' });
    const files = readdirSync(join(folder.path, 's3'), { recursive: true, withFileTypes: true });
    expect(files.filter((entry) => entry.isFile())).toHaveLength(2);
  });

  it('refuses an operation it does not have by its name', async () => {
    const named = s3Operation('POST', '/plain/key', new URLSearchParams('uploads'), {});
    const response = await s3.handle({ ...named, query: new URLSearchParams(), headers: {}, body: Buffer.alloc(0) });
    expect(response.status).toBe(501);
    expect(response.body.toString()).toContain('CreateMultipartUpload');
  });

  it('refuses a chunked body that was cut off', () => {
    const headers = { 'content-encoding': 'aws-chunked' };
    expect(() => decodeAwsChunked(Buffer.from('5\r\nhel'), headers)).toThrow(/terminated/);
    expect(() => decodeAwsChunked(Buffer.from('3\r\nhel\r\n'), headers)).toThrow(/terminated/);
    expect(decodeAwsChunked(Buffer.from('3\r\nhel\r\n0\r\n\r\n'), headers).toString()).toBe('hel');
  });
});
