/** What an S3 request means before any bucket is touched: its operation, its real body, its checksums. */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { AwsError } from '../../aws/aws.ts';

export interface S3Request {
  operation: string;
  bucket: string;
  key?: string;
  query: URLSearchParams;
  /** Names in lower case. */
  headers: Record<string, string>;
  body: Buffer;
}

/** First match wins; a subresource in the query or a header decides before the bare method. */
const OBJECT_OPERATIONS: [method: string, marker: string, operation: string][] = [
  ['PUT', 'retention', 'PutObjectRetention'],
  ['GET', 'retention', 'GetObjectRetention'],
  ['PUT', 'legal-hold', 'PutObjectLegalHold'],
  ['GET', 'legal-hold', 'GetObjectLegalHold'],
  ['PUT', 'tagging', 'PutObjectTagging'],
  ['GET', 'tagging', 'GetObjectTagging'],
  ['GET', 'attributes', 'GetObjectAttributes'],
  ['PUT', 'partNumber', 'UploadPart'],
  ['POST', 'uploads', 'CreateMultipartUpload'],
  ['POST', 'uploadId', 'CompleteMultipartUpload'],
  ['DELETE', 'uploadId', 'AbortMultipartUpload'],
  ['GET', 'uploadId', 'ListParts'],
  ['PUT', 'x-amz-copy-source', 'CopyObject'],
  ['PUT', '', 'PutObject'],
  ['GET', '', 'GetObject'],
  ['HEAD', '', 'HeadObject'],
  ['DELETE', '', 'DeleteObject'],
];

const BUCKET_OPERATIONS: typeof OBJECT_OPERATIONS = [
  ['GET', 'list-type', 'ListObjectsV2'],
  ['GET', 'versions', 'ListObjectVersions'],
  ['GET', 'location', 'GetBucketLocation'],
  ['GET', 'versioning', 'GetBucketVersioning'],
  ['GET', 'object-lock', 'GetObjectLockConfiguration'],
  ['POST', 'delete', 'DeleteObjects'],
  ['GET', '', 'ListObjects'],
  ['HEAD', '', 'HeadBucket'],
  ['PUT', '', 'CreateBucket'],
  ['DELETE', '', 'DeleteBucket'],
];

/**
 * Names the operation of a path-style request. `path` is the raw path of the request line: a URL parser would already
 * have folded `..`, which is an ordinary part of an S3 key.
 */
export function s3Operation(
  method: string,
  path: string,
  query: URLSearchParams,
  headers: Record<string, string>,
): { operation: string; bucket: string; key?: string } {
  const [, bucket = '', ...rest] = path.split('/');
  const key = decodeKey(rest.join('/'));
  if (bucket === '') return { operation: 'ListBuckets', bucket };
  const matches = ([verb, marker]: [string, string, string]) =>
    verb === method && (marker === '' || query.has(marker) || headers[marker] !== undefined);
  const found = (key === '' ? BUCKET_OPERATIONS : OBJECT_OPERATIONS).find(matches);
  const operation = found?.[2] ?? `${method} request`;
  return key === '' ? { operation, bucket } : { operation, bucket, key };
}

function decodeKey(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    throw new AwsError('InvalidURI', "Couldn't parse the specified URI.");
  }
}

/**
 * Undoes `aws-chunked`. SDKs send streams this way, with the checksum in a trailer; S3 treats a trailer like a header,
 * so trailers are added to `headers` for `verifyChecksums` to find.
 */
export function decodeAwsChunked(body: Buffer, headers: Record<string, string>): Buffer {
  const encodings = (headers['content-encoding'] ?? '').split(',').map((encoding) => encoding.trim());
  const streaming = headers['x-amz-content-sha256']?.startsWith('STREAMING-') ?? false;
  if (!encodings.includes('aws-chunked') && !streaming) return body;
  const chunks: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.toString('latin1', at, lineEnd), 16);
    if (lineEnd < 0 || !(size >= 0)) throw incomplete();
    const start = lineEnd + 2;
    if (size === 0) {
      readTrailers(body.toString('latin1', start), headers);
      break;
    }
    if (start + size > body.length) throw incomplete();
    chunks.push(body.subarray(start, start + size));
    at = start + size + 2;
  }
  const decoded = Buffer.concat(chunks);
  const announced = headers['x-amz-decoded-content-length'];
  if (announced !== undefined && Number(announced) !== decoded.length) throw incomplete();
  return decoded;
}

function readTrailers(text: string, headers: Record<string, string>): void {
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) headers[line.slice(0, colon).trim().toLowerCase()] = line.slice(colon + 1).trim();
  }
}

function incomplete(): AwsError {
  return new AwsError('IncompleteBody', 'The request body terminated unexpectedly.');
}

const DIGESTS: Record<string, (body: Buffer) => string> = {
  'content-md5': (body) => createHash('md5').update(body).digest('base64'),
  'x-amz-checksum-sha256': (body) => createHash('sha256').update(body).digest('base64'),
  'x-amz-checksum-sha1': (body) => createHash('sha1').update(body).digest('base64'),
  'x-amz-checksum-crc32': (body) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(crc32(body));
    return bytes.toString('base64');
  },
};

/** Refuses a body that differs from its checksums; returns those to give back with the object. */
export function verifyChecksums(body: Buffer, headers: Record<string, string>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, digest] of Object.entries(DIGESTS)) {
    const given = headers[name];
    if (given === undefined) continue;
    if (given !== digest(body)) {
      throw new AwsError('BadDigest', `The ${name} you specified did not match the calculated checksum.`);
    }
    if (name !== 'content-md5') kept[name] = given;
  }
  return kept;
}

/** Resolves a `Range` header to first and last byte; undefined where S3 sends the whole object. */
export function parseRange(header: string | undefined, size: number): { first: number; last: number } | undefined {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  if (match === null || (match[1] === '' && match[2] === '')) return undefined;
  const first = match[1] === '' ? Math.max(size - Number(match[2]), 0) : Number(match[1]);
  const last = match[1] === '' || match[2] === '' ? size - 1 : Math.min(Number(match[2]), size - 1);
  if (match[1] === '' && Number(match[2]) === 0) throw unsatisfiable();
  if (match[1] !== '' && match[2] !== '' && Number(match[2]) < first) return undefined;
  if (first >= size) throw unsatisfiable();
  return { first, last };
}

function unsatisfiable(): AwsError {
  return new AwsError('InvalidRange', 'The requested range is not satisfiable', 416);
}
