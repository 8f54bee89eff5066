/**
 * S3 as a write-once store in one SQLite file, with Object Lock. Everything is synchronous, so that no other request can come
 * between a condition and its write. Everything that the product does not use is refused by name.
 */
import { hash, randomUUID } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { AwsError } from '../aws/aws.ts';
import type { RestService } from '../aws/aws-calls.ts';
import type { WireReply, WireRequest } from '../aws/wire.ts';
import type { HostClock } from '../host/clock.ts';
import type { AccessCheck } from '../iam/access-checks.ts';
import { openDatabase } from './durable-file.ts';

export interface BucketDefinition {
  name: string;
  versioned: boolean;
  defaultRetention?: { mode: 'GOVERNANCE' | 'COMPLIANCE'; days: number };
}

/** Encrypts objects that name a key, as S3 does with KMS. */
export interface ObjectEncryption {
  encrypt(keyArn: string, content: Uint8Array): Buffer;
  decrypt(keyArn: string, content: Uint8Array): Buffer;
}

interface StoredObject {
  bucket: string;
  key: string;
  versionId: string;
  content: Uint8Array;
  etag: string;
  /** JSON of the content type, the checksums and the encryption. */
  headers: string;
  modifiedMs: number;
  lockMode: string | null;
  retainUntilMs: number | null;
}

interface Operation {
  name: string;
  action: string;
  /** Supported query parameters besides `x-id`, in which the SDK names the operation. */
  query: string[];
  /** Supported headers that change the meaning of a request. */
  headers: string[];
}

const ENCRYPTION_HEADER = 'x-amz-server-side-encryption';
const ENCRYPTION_KEY_HEADER = 'x-amz-server-side-encryption-aws-kms-key-id';
const BUCKET_KEY_HEADER = 'x-amz-server-side-encryption-bucket-key-enabled';
const CHECKSUM_HEADERS = ['x-amz-checksum-sha256', 'x-amz-checksum-crc32'] as const;
const READ = { query: [], headers: ['x-amz-checksum-mode'] };
const OBJECT_OPERATIONS: Record<string, Operation> = {
  PUT: {
    name: 'PutObject',
    action: 's3:PutObject',
    query: [],
    headers: [
      ...['if-none-match', 'x-amz-sdk-checksum-algorithm', ...CHECKSUM_HEADERS],
      ...[ENCRYPTION_HEADER, ENCRYPTION_KEY_HEADER, BUCKET_KEY_HEADER],
    ],
  },
  GET: { name: 'GetObject', action: 's3:GetObject', query: [], headers: [...READ.headers, 'range'] },
  HEAD: { name: 'HeadObject', action: 's3:GetObject', ...READ },
  DELETE: { name: 'DeleteObject', action: 's3:DeleteObject', query: ['versionId'], headers: [] },
};
const LIST: Operation = { name: 'ListObjectsV2', action: 's3:ListBucket', query: ['list-type'], headers: [] };

/** A header like these is refused unless the operation supports it. */
const MEANINGFUL_HEADER = /^(if-.+|range|content-(md5|encoding)|x-amz-.+)$/;
/** Part of every signed request. */
const SIGNING_HEADERS = ['x-amz-date', 'x-amz-user-agent', 'x-amz-content-sha256', 'x-amz-security-token'];

const DAY_MS = 86_400_000;
const MAX_KEY_BYTES = 1_024;
const MAX_KEYS_LISTED = 1_000;
const UNVERSIONED = 'null';

const SCHEMA = `
CREATE TABLE IF NOT EXISTS objects (
  bucket TEXT NOT NULL, key TEXT NOT NULL, versionId TEXT NOT NULL, content BLOB NOT NULL, etag TEXT NOT NULL,
  headers TEXT NOT NULL, modifiedMs REAL NOT NULL, lockMode TEXT, retainUntilMs REAL, PRIMARY KEY (bucket, key)
);`;

export class LocalS3 implements RestService {
  readonly #clock: HostClock;
  readonly #buckets: Map<string, BucketDefinition>;
  readonly #database: DatabaseSync;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #encryption: ObjectEncryption | undefined;

  constructor({
    dataFolder,
    clock,
    buckets,
    encryption,
  }: {
    dataFolder: string;
    clock: HostClock;
    buckets: BucketDefinition[];
    encryption?: ObjectEncryption;
  }) {
    this.#encryption = encryption;
    this.#clock = clock;
    this.#buckets = new Map(buckets.map((bucket) => [bucket.name, bucket]));
    this.#database = openDatabase(dataFolder, 's3', SCHEMA);
    this.#statements = prepare(this.#database);
  }

  describe(request: WireRequest): { operation: string; checks: AccessCheck[] } {
    const { operation, bucket, key } = parse(request);
    const byVersion = request.query.has('versionId');
    const ifNoneMatch = request.headers['if-none-match'];
    const check: AccessCheck = {
      action: byVersion ? `${operation.action}Version` : operation.action,
      resource: `arn:aws:s3:::${bucket}${key === '' ? '' : `/${key}`}`,
      context: ifNoneMatch === undefined ? {} : { 's3:if-none-match': ifNoneMatch },
    };
    return { operation: operation.name, checks: [check, ...this.#keyChecks(operation, bucket, key, request)] };
  }

  /** A caller that writes or reads an object encrypted with a KMS key must also be allowed to use the key. */
  #keyChecks({ name }: Operation, bucket: string, key: string, { headers }: WireRequest): AccessCheck[] {
    if (name === 'PutObject') {
      const resource = headers[ENCRYPTION_KEY_HEADER];
      return resource === undefined ? [] : [{ action: 'kms:GenerateDataKey', resource, context: {} }];
    }
    const stored = name === 'GetObject' ? this.#statements.get.get(bucket, key) : undefined;
    const resource = stored && keyOf(stored as unknown as StoredObject);
    return resource === undefined ? [] : [{ action: 'kms:Decrypt', resource, context: {} }];
  }

  async handle(request: WireRequest): Promise<WireReply> {
    const { operation, bucket: name, key } = parse(request);
    const bucket = this.#buckets.get(name);
    if (bucket === undefined) throw new AwsError('NoSuchBucket', 'The specified bucket does not exist', 404);
    if (Buffer.byteLength(key) > MAX_KEY_BYTES) throw new AwsError('KeyTooLongError', 'Your key is too long');
    switch (operation.name) {
      case 'PutObject':
        return this.#put(bucket, key, request);
      case 'DeleteObject':
        return this.#delete(bucket, key, request.query.get('versionId'));
      case 'ListObjectsV2':
        return this.#list(bucket);
      default:
        return this.#get(bucket, key, request.headers.range);
    }
  }

  close(): void {
    this.#database.close();
  }

  #put(bucket: BucketDefinition, key: string, { headers, body }: WireRequest): WireReply {
    const checksums = verifyChecksums(body, headers);
    if ((headers['if-none-match'] ?? '*') !== '*') throw notImplemented('If-None-Match with another value than *');
    if (this.#object(bucket, key) !== undefined) {
      if (headers['if-none-match'] === undefined) throw notImplemented('a second version of an object');
      throw new AwsError('PreconditionFailed', 'At least one of the pre-conditions you specified did not hold', 412);
    }
    const encryption = encryptionIn(headers);
    const now = this.#clock.now();
    const { defaultRetention } = bucket;
    const object = {
      bucket: bucket.name,
      key,
      versionId: bucket.versioned ? randomUUID().replaceAll('-', '') : UNVERSIONED,
      content: encryption.key === undefined ? body : this.#cipher().encrypt(encryption.key, body),
      etag: `"${etagOf(body, encryption.key)}"`,
      headers: JSON.stringify({
        'content-type': headers['content-type'] ?? 'binary/octet-stream',
        ...checksums,
        ...encryption.headers,
      }),
      modifiedMs: now,
      lockMode: defaultRetention?.mode ?? null,
      retainUntilMs: defaultRetention ? now + defaultRetention.days * DAY_MS : null,
    };
    this.#statements.add.run(object);
    return reply(200, { etag: object.etag, ...checksums, ...encryption.headers, ...versionHeader(object) });
  }

  #get(bucket: BucketDefinition, key: string, range?: string): WireReply {
    const object = this.#object(bucket, key);
    if (object === undefined) throw new AwsError('NoSuchKey', 'The specified key does not exist.', 404);
    const { etag, headers, modifiedMs, lockMode, retainUntilMs } = object;
    const encryptedWith = keyOf(object);
    const content =
      encryptedWith === undefined ? object.content : this.#cipher().decrypt(encryptedWith, object.content);
    const part = range === undefined ? undefined : partOf(content, range);
    const { 'content-type': contentType } = JSON.parse(headers);
    return reply(
      part ? 206 : 200,
      {
        // The stored checksums are of the whole object.
        ...(part ? { 'content-type': contentType, 'content-range': part.range } : JSON.parse(headers)),
        etag,
        'content-length': String((part?.bytes ?? content).byteLength),
        'last-modified': new Date(modifiedMs).toUTCString(),
        ...versionHeader(object),
        ...(lockMode !== null && retainUntilMs !== null
          ? { 'x-amz-object-lock-mode': lockMode, 'x-amz-object-lock-retain-until-date': isoTime(retainUntilMs) }
          : {}),
      },
      Buffer.from(part?.bytes ?? content),
    );
  }

  /** Deletes one version. Object Lock refuses this to every caller until the retention has passed. */
  #delete(bucket: BucketDefinition, key: string, versionId: string | null): WireReply {
    if (versionId === null && bucket.versioned) throw notImplemented('DeleteObject without a versionId');
    const object = this.#object(bucket, key);
    if (object?.versionId !== (versionId ?? UNVERSIONED)) return reply(204);
    if (object.retainUntilMs !== null && object.retainUntilMs > this.#clock.now()) {
      throw new AwsError('AccessDenied', 'Access Denied because object protected by object lock.', 403);
    }
    this.#statements.remove.run(bucket.name, key);
    return reply(204, versionHeader(object));
  }

  #list({ name }: BucketDefinition): WireReply {
    const objects = this.#statements.list.all(name, MAX_KEYS_LISTED + 1) as unknown as (StoredObject & {
      size: number;
    })[];
    if (objects.length > MAX_KEYS_LISTED) throw notImplemented(`a list of more than ${MAX_KEYS_LISTED} objects`);
    const contents = objects.map(
      ({ key, etag, size, modifiedMs }) =>
        `<Contents><Key>${xml(key)}</Key><LastModified>${isoTime(modifiedMs)}</LastModified><ETag>${xml(etag)}</ETag>` +
        `<Size>${size}</Size><StorageClass>STANDARD</StorageClass></Contents>`,
    );
    const body =
      '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">' +
      `<Name>${xml(name)}</Name><KeyCount>${objects.length}</KeyCount><MaxKeys>${MAX_KEYS_LISTED}</MaxKeys>` +
      `<IsTruncated>false</IsTruncated>${contents.join('')}</ListBucketResult>`;
    return reply(200, { 'content-type': 'application/xml' }, Buffer.from(body));
  }

  #cipher(): ObjectEncryption {
    if (this.#encryption === undefined) throw notImplemented('objects that are encrypted with a key of KMS');
    return this.#encryption;
  }

  #object(bucket: BucketDefinition, key: string): StoredObject | undefined {
    return this.#statements.get.get(bucket.name, key) as StoredObject | undefined;
  }
}

const keyOf = ({ headers }: StoredObject): string | undefined => JSON.parse(headers)[ENCRYPTION_KEY_HEADER];

function encryptionIn(headers: Record<string, string>): { key?: string; headers: Record<string, string> } {
  const [algorithm, key] = [headers[ENCRYPTION_HEADER], headers[ENCRYPTION_KEY_HEADER]];
  if (algorithm === undefined && key === undefined) return { headers: {} };
  if (algorithm !== 'aws:kms' || key === undefined) throw notImplemented(`the encryption ${algorithm} without a key`);
  return { key, headers: { [ENCRYPTION_HEADER]: algorithm, [ENCRYPTION_KEY_HEADER]: key } };
}

function prepare(database: DatabaseSync) {
  return {
    add: database.prepare(`INSERT INTO objects VALUES
      (:bucket, :key, :versionId, :content, :etag, :headers, :modifiedMs, :lockMode, :retainUntilMs)`),
    get: database.prepare('SELECT * FROM objects WHERE bucket = ? AND key = ?'),
    remove: database.prepare('DELETE FROM objects WHERE bucket = ? AND key = ?'),
    // In the order of the UTF-8 bytes, as S3 does.
    list: database.prepare(`SELECT key, etag, length(content) AS size, modifiedMs FROM objects WHERE bucket = ?
      ORDER BY key LIMIT ?`),
  };
}

function partOf(content: Uint8Array, range: string): { bytes: Uint8Array; range: string } {
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(range) ?? [];
  if (first === undefined || last === undefined) throw notImplemented(`the range ${range}`);
  const [from, to] = [Number(first), Math.min(Number(last), content.byteLength - 1)];
  if (from > to) throw new AwsError('InvalidRange', 'The requested range is not satisfiable', 416);
  return { bytes: content.subarray(from, to + 1), range: `bytes ${from}-${to}/${content.byteLength}` };
}

/**
 * Names the operation of a path-style request. `path` is the raw path of the request: a URL parser would resolve `..`, which
 * is an ordinary part of an S3 key.
 */
function parse({ method, path, query, headers }: WireRequest): { operation: Operation; bucket: string; key: string } {
  const [, bucket = '', ...rest] = path.split('/');
  const key = decodeKey(rest.join('/'));
  const isList = method === 'GET' && query.get('list-type') === '2';
  const operation = key === '' ? (isList ? LIST : undefined) : OBJECT_OPERATIONS[method];
  if (operation === undefined) throw notImplemented(`${method} ${path}`);
  const parameter = [...query.keys()].find((name) => name !== 'x-id' && !operation.query.includes(name));
  if (parameter !== undefined) throw notImplemented(`the parameter ${parameter} of ${operation.name}`);
  const header = Object.keys(headers)
    .filter((name) => MEANINGFUL_HEADER.test(name))
    .find((name) => !SIGNING_HEADERS.includes(name) && !operation.headers.includes(name));
  if (header !== undefined) throw notImplemented(`the header ${header} of ${operation.name}`);
  return { operation, bucket, key };
}

function decodeKey(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    throw new AwsError('InvalidURI', "Couldn't parse the specified URI.");
  }
}

/** As in S3, an object that is encrypted with a KMS key has an ETag that is no digest. */
function etagOf(body: Buffer, encryptionKey: string | undefined): string {
  return encryptionKey === undefined ? hash('md5', body, 'hex') : randomUUID().replaceAll('-', '');
}

/** Refuses a body that does not match its checksums. Returns the checksums, which are stored with the object. */
function verifyChecksums(body: Buffer, headers: Record<string, string>): Record<string, string> {
  const digests = {
    'x-amz-checksum-sha256': () => hash('sha256', body, 'base64'),
    'x-amz-checksum-crc32': () => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(crc32(body));
      return bytes.toString('base64');
    },
  };
  const given = CHECKSUM_HEADERS.flatMap((name) =>
    headers[name] === undefined ? [] : [[name, headers[name]] as const],
  );
  for (const [name, value] of given) {
    if (value === digests[name]()) continue;
    throw new AwsError('BadDigest', `The ${name} you specified did not match the calculated checksum.`);
  }
  return Object.fromEntries(given);
}

function versionHeader({ versionId }: { versionId: string }): Record<string, string> {
  return versionId === UNVERSIONED ? {} : { 'x-amz-version-id': versionId };
}

function reply(status: number, headers: Record<string, string> = {}, body = Buffer.alloc(0)): WireReply {
  return { status, headers, body };
}

function notImplemented(what: string): AwsError {
  return new AwsError('NotImplemented', `The local S3 does not support ${what}.`, 501);
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function xml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}
