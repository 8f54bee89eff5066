/** S3 on files: what the product uses of it, versions and Object Lock included. Anything else is refused by name. */
import { createHash, randomUUID } from 'node:crypto';
import { AwsError } from '../../aws/aws.ts';
import type { HostClock } from '../../host/clock.ts';
import { document, element, errorDocument, isoTime, listObjectsV2, listObjectVersions } from './listing.ts';
import { checkRetentionChange, lockedUntil, newLock, parseRetention } from './object-lock.ts';
import { parseRange, type S3Request, verifyChecksums } from './request.ts';
import { type NewVersion, type ObjectVersion, S3Store } from './store.ts';

export { decodeAwsChunked, type S3Request, s3Operation } from './request.ts';

export interface S3Response {
  status: number;
  headers: Record<string, string>;
  /** Empty for HEAD. */
  body: Buffer;
}

export interface BucketDefinition {
  name: string;
  objectLock: boolean;
  versioned: boolean;
  defaultRetention?: { mode: 'GOVERNANCE' | 'COMPLIANCE'; days: number };
}

/** AWS requires a checksum with a lock, so that what is locked is what was meant. */
const CHECKSUM_HEADERS = /^(content-md5|x-amz-checksum-.+)$/;
const KEPT_HEADERS =
  /^(content-(type|disposition|language)|cache-control|expires|x-amz-meta-.+|x-amz-storage-class|x-amz-server-side-encryption.*)$/;
const MAX_KEY_BYTES = 1_024;
const UNVERSIONED = 'null';

type Operation = (bucket: BucketDefinition, request: S3Request & { key: string }) => S3Response;

export class LocalS3 {
  readonly #clock: HostClock;
  readonly #store: S3Store;
  readonly #buckets: Map<string, BucketDefinition>;
  readonly #operations: Record<string, Operation> = {
    PutObject: (bucket, request) => this.#put(bucket, request),
    GetObject: (_bucket, request) => this.#get(request),
    HeadObject: (_bucket, request) => this.#get(request),
    DeleteObject: (bucket, request) => this.#delete(bucket, request),
    PutObjectRetention: (bucket, request) => this.#putRetention(bucket, request),
    GetObjectRetention: (bucket, request) => this.#getRetention(bucket, request),
    ListObjectsV2: (bucket, { query }) =>
      xmlAnswer(listObjectsV2(bucket.name, query, (from) => this.#store.listLatest(bucket.name, from))),
    ListObjectVersions: (bucket, { query }) => {
      const from = this.#store.listVersions(bucket.name, query.get('prefix') ?? '');
      return xmlAnswer(listObjectVersions(bucket.name, query, from));
    },
    HeadBucket: () => answer(200),
  };

  constructor({ dataFolder, clock, buckets }: { dataFolder: string; clock: HostClock; buckets: BucketDefinition[] }) {
    this.#clock = clock;
    this.#store = new S3Store(dataFolder);
    this.#buckets = new Map(buckets.map((bucket) => [bucket.name, bucket]));
  }

  async handle(request: S3Request): Promise<S3Response> {
    const response = this.#answer(request);
    return request.operation.startsWith('Head') ? { ...response, body: Buffer.alloc(0) } : response;
  }

  close(): void {
    this.#store.close();
  }

  #answer(request: S3Request): S3Response {
    const key = request.key ?? '';
    try {
      const bucket = this.#buckets.get(request.bucket);
      if (bucket === undefined) throw new AwsError('NoSuchBucket', 'The specified bucket does not exist', 404);
      const run = this.#operations[request.operation];
      if (run === undefined) {
        throw new AwsError('NotImplemented', `The local S3 does not offer ${request.operation}.`, 501);
      }
      if (Buffer.byteLength(key) > MAX_KEY_BYTES) throw new AwsError('KeyTooLongError', 'Your key is too long');
      return run(bucket, { ...request, key });
    } catch (error) {
      if (!(error instanceof AwsError)) throw error;
      return s3Error(error, `/${request.bucket}/${key}`);
    }
  }

  #put(bucket: BucketDefinition, { key, headers, body }: S3Request & { key: string }): S3Response {
    const checksums = verifyChecksums(body, headers);
    const now = this.#clock.now();
    const lock = newLock(bucket, headers, now);
    if (
      headers['x-amz-object-lock-mode'] !== undefined &&
      !Object.keys(headers).some((n) => CHECKSUM_HEADERS.test(n))
    ) {
      throw new AwsError('InvalidRequest', 'Content-MD5 OR x-amz-checksum- is required with Object Lock parameters');
    }
    this.#checkWriteConditions(bucket.name, key, headers);
    const version: NewVersion = {
      ...this.#identity(bucket, key),
      deleteMarker: 0,
      etag: `"${createHash('md5').update(body).digest('hex')}"`,
      size: body.length,
      headers: JSON.stringify({ ...keptHeaders(headers), ...checksums }),
      lockMode: lock?.mode ?? null,
      retainUntilMs: lock?.untilMs ?? null,
    };
    this.#store.add(version, body);
    return answer(200, { etag: version.etag, ...checksums, ...versionHeader(version) });
  }

  #checkWriteConditions(bucket: string, key: string, headers: Record<string, string>): void {
    const latest = this.#store.latest(bucket, key);
    const existing = latest?.deleteMarker === 1 ? undefined : latest;
    if (headers['if-none-match'] !== undefined) {
      if (headers['if-none-match'] !== '*') {
        throw new AwsError(
          'NotImplemented',
          'A header you provided implies functionality that is not implemented',
          501,
        );
      }
      if (existing !== undefined) throw preconditionFailed();
    }
    const expected = headers['if-match'];
    if (expected === undefined) return;
    if (existing === undefined) throw noSuchKey();
    if (unquoted(expected) !== unquoted(existing.etag)) throw preconditionFailed();
  }

  #get({ bucket, key, query, headers }: S3Request & { key: string }): S3Response {
    const version = this.#find(bucket, key, query.get('versionId'));
    const described = describe(version);
    const etag = unquoted(version.etag);
    const matches = (header: string) => header === '*' || header.split(',').some((tag) => unquoted(tag) === etag);
    const ifMatch = headers['if-match'];
    const ifNoneMatch = headers['if-none-match'];
    if (ifMatch !== undefined && !matches(ifMatch)) throw preconditionFailed();
    if (ifNoneMatch !== undefined && matches(ifNoneMatch)) return answer(304, described);
    const range = parseRange(headers.range, version.size);
    const checksums = range === undefined && headers['x-amz-checksum-mode'] === 'ENABLED' ? checksumsOf(version) : {};
    const all = { ...described, ...checksums };
    if (range === undefined) {
      return answer(200, { ...all, 'content-length': String(version.size) }, this.#store.bytes(version));
    }
    const part = this.#store.bytes(version).subarray(range.first, range.last + 1);
    const contentRange = `bytes ${range.first}-${range.last}/${version.size}`;
    return answer(206, { ...all, 'content-range': contentRange, 'content-length': String(part.length) }, part);
  }

  #find(bucket: string, key: string, versionId: string | null): ObjectVersion {
    const version = versionId === null ? this.#store.latest(bucket, key) : this.#store.version(bucket, key, versionId);
    if (version === undefined) {
      throw versionId === null ? noSuchKey() : new AwsError('NoSuchVersion', 'The version does not exist.', 404);
    }
    if (version.deleteMarker === 1) {
      throw versionId === null
        ? noSuchKey()
        : new AwsError('MethodNotAllowed', 'The specified method is not allowed against this resource.', 405);
    }
    return version;
  }

  #delete(bucket: BucketDefinition, { key, query, headers }: S3Request & { key: string }): S3Response {
    const versionId = query.get('versionId');
    if (versionId === null && isVersioned(bucket)) {
      const marker = { ...this.#identity(bucket, key), deleteMarker: 1, etag: '', size: 0, headers: '{}' };
      this.#store.add({ ...marker, lockMode: null, retainUntilMs: null }, undefined);
      return answer(204, { 'x-amz-delete-marker': 'true', ...versionHeader(marker) });
    }
    const version = this.#store.version(bucket.name, key, versionId ?? UNVERSIONED);
    if (version === undefined) return answer(204);
    const bypass = headers['x-amz-bypass-governance-retention'] === 'true';
    if (lockedUntil(version, this.#clock.now(), bypass) !== undefined) {
      throw new AwsError('AccessDenied', 'Access Denied because object protected by object lock.', 403);
    }
    this.#store.remove(version);
    const marker = version.deleteMarker === 1 ? { 'x-amz-delete-marker': 'true' } : undefined;
    return answer(204, { ...marker, ...versionHeader(version) });
  }

  #putRetention(bucket: BucketDefinition, { key, query, headers, body }: S3Request & { key: string }): S3Response {
    if (!bucket.objectLock) throw noLockConfiguration();
    const version = this.#find(bucket.name, key, query.get('versionId'));
    const wanted = parseRetention(body.toString(), this.#clock.now());
    const bypass = headers['x-amz-bypass-governance-retention'] === 'true';
    checkRetentionChange(version, wanted, this.#clock.now(), bypass);
    this.#store.setRetention(version, wanted.mode, wanted.untilMs);
    return answer(200);
  }

  #getRetention(bucket: BucketDefinition, { key, query }: S3Request & { key: string }): S3Response {
    if (!bucket.objectLock) throw noLockConfiguration();
    const { lockMode, retainUntilMs } = this.#find(bucket.name, key, query.get('versionId'));
    if (lockMode === null || retainUntilMs === null) {
      const message = 'The specified object does not have a ObjectLock configuration';
      throw new AwsError('NoSuchObjectLockConfiguration', message, 404);
    }
    const parts = [element('Mode', lockMode), element('RetainUntilDate', isoTime(retainUntilMs))];
    return xmlAnswer(document('Retention', parts));
  }

  #identity(bucket: BucketDefinition, key: string) {
    const versionId = isVersioned(bucket) ? randomUUID().replaceAll('-', '') : UNVERSIONED;
    return { bucket: bucket.name, key, versionId, modifiedMs: this.#clock.now() };
  }
}

/** Object Lock does not exist without versions. */
function isVersioned({ versioned, objectLock }: BucketDefinition): boolean {
  return versioned || objectLock;
}

function describe(version: ObjectVersion): Record<string, string> {
  const { lockMode, retainUntilMs } = version;
  const kept = Object.entries(JSON.parse(version.headers) as Record<string, string>);
  return {
    'content-type': 'binary/octet-stream',
    ...Object.fromEntries(kept.filter(([name]) => !CHECKSUM_HEADERS.test(name))),
    etag: version.etag,
    'last-modified': new Date(version.modifiedMs).toUTCString(),
    'accept-ranges': 'bytes',
    ...versionHeader(version),
    ...(lockMode === null || retainUntilMs === null
      ? {}
      : { 'x-amz-object-lock-mode': lockMode, 'x-amz-object-lock-retain-until-date': isoTime(retainUntilMs) }),
  };
}

function checksumsOf({ headers }: ObjectVersion): Record<string, string> {
  const kept = Object.entries(JSON.parse(headers) as Record<string, string>);
  return Object.fromEntries(kept.filter(([name]) => CHECKSUM_HEADERS.test(name)));
}

function keptHeaders(headers: Record<string, string>): Record<string, string> {
  const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => KEPT_HEADERS.test(name)));
  const encodings = (headers['content-encoding'] ?? '').split(',').map((encoding) => encoding.trim());
  // `aws-chunked` describes the request, not the object.
  const encoding = encodings.filter((name) => name !== '' && name !== 'aws-chunked').join(',');
  return encoding === '' ? kept : { ...kept, 'content-encoding': encoding };
}

function versionHeader({ versionId }: { versionId: string }): Record<string, string> {
  return versionId === UNVERSIONED ? {} : { 'x-amz-version-id': versionId };
}

function unquoted(etag: string): string {
  return etag.trim().replace(/^(W\/)?"(.*)"$/, '$2');
}

function answer(status: number, headers: Record<string, string> = {}, body: Buffer = Buffer.alloc(0)): S3Response {
  return { status, headers, body };
}

function xmlAnswer(text: string, status = 200): S3Response {
  return answer(status, { 'content-type': 'application/xml' }, Buffer.from(text));
}

/** S3's errors are XML, unlike those of the JSON services; the gateway uses this for its own refusals too. */
export function s3Error({ code, message, httpStatus }: AwsError, resource: string): S3Response {
  return xmlAnswer(errorDocument(code, message, resource), httpStatus);
}

function preconditionFailed(): AwsError {
  return new AwsError('PreconditionFailed', 'At least one of the pre-conditions you specified did not hold', 412);
}

function noSuchKey(): AwsError {
  return new AwsError('NoSuchKey', 'The specified key does not exist.', 404);
}

function noLockConfiguration(): AwsError {
  return new AwsError('InvalidRequest', 'Bucket is missing Object Lock Configuration');
}
