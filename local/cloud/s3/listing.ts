/** Listings and errors of S3, in XML. */
import { AwsError } from '../../aws/aws.ts';
import type { ObjectVersion } from './store.ts';

const MAX_KEYS = 1_000;

/** One page: keys, and the prefixes into which a delimiter rolls keys up. */
interface Page {
  versions: ObjectVersion[];
  commonPrefixes: string[];
  /** Set if more follows: the last key or common prefix of this page. */
  resumeAfter?: string;
}

export function listObjectsV2(
  bucket: string,
  query: URLSearchParams,
  from: (key: string) => Iterable<ObjectVersion>,
): string {
  const prefix = query.get('prefix') ?? '';
  const delimiter = query.get('delimiter') ?? '';
  const token = query.get('continuation-token');
  const maxKeys = maxKeysOf(query);
  const after = token === null ? (query.get('start-after') ?? '') : Buffer.from(token, 'base64url').toString();
  const start = Buffer.compare(Buffer.from(after), Buffer.from(prefix)) > 0 ? after : prefix;
  const { versions, commonPrefixes, resumeAfter } = page(from(start), { prefix, delimiter, after, maxKeys });
  const encode = query.get('encoding-type') === 'url' ? encodeURIComponent : xml;
  return document('ListBucketResult', [
    element('Name', xml(bucket)),
    element('Prefix', encode(prefix)),
    delimiter === '' ? '' : element('Delimiter', encode(delimiter)),
    element('MaxKeys', maxKeys),
    element('KeyCount', versions.length + commonPrefixes.length),
    element('IsTruncated', resumeAfter !== undefined),
    token === null ? '' : element('ContinuationToken', xml(token)),
    resumeAfter === undefined ? '' : element('NextContinuationToken', Buffer.from(resumeAfter).toString('base64url')),
    query.get('encoding-type') === 'url' ? element('EncodingType', 'url') : '',
    ...versions.map((version) => element('Contents', element('Key', encode(version.key)) + facts(version))),
    ...commonPrefixes.map((common) => element('CommonPrefixes', element('Prefix', encode(common)))),
  ]);
}

/** Not paged: what it serves locally (tests, the auditor's look at a lock) stays small, and a longer list says so. */
export function listObjectVersions(bucket: string, query: URLSearchParams, from: Iterable<ObjectVersion>): string {
  const prefix = query.get('prefix') ?? '';
  const { versions, resumeAfter } = page(from, { prefix, delimiter: '', after: '', maxKeys: MAX_KEYS });
  if (resumeAfter !== undefined) {
    throw new AwsError('NotImplemented', `The local S3 lists at most ${MAX_KEYS} versions.`, 501);
  }
  const entry = (version: ObjectVersion) => {
    const identity =
      element('Key', xml(version.key)) +
      element('VersionId', version.versionId) +
      element('IsLatest', version.latest === 1);
    return version.deleteMarker === 1
      ? element('DeleteMarker', identity + element('LastModified', isoTime(version.modifiedMs)))
      : element('Version', identity + facts(version));
  };
  return document('ListVersionsResult', [
    element('Name', xml(bucket)),
    element('Prefix', xml(prefix)),
    element('MaxKeys', MAX_KEYS),
    element('IsTruncated', false),
    ...versions.map(entry),
  ]);
}

function page(
  versions: Iterable<ObjectVersion>,
  { prefix, delimiter, after, maxKeys }: { prefix: string; delimiter: string; after: string; maxKeys: number },
): Page {
  const result: Page = { versions: [], commonPrefixes: [] };
  let last: string | undefined;
  if (maxKeys === 0) return result;
  for (const version of versions) {
    const { key } = version;
    if (!key.startsWith(prefix)) break;
    if (after !== '' && key === after) continue;
    const rolledUp = commonPrefix(key, prefix, delimiter);
    // The page before ended with this common prefix, or this page already names it.
    if (rolledUp !== undefined && (rolledUp === after || rolledUp === result.commonPrefixes.at(-1))) continue;
    if (result.versions.length + result.commonPrefixes.length === maxKeys) return { ...result, resumeAfter: last };
    if (rolledUp === undefined) result.versions.push(version);
    else result.commonPrefixes.push(rolledUp);
    last = rolledUp ?? key;
  }
  return result;
}

function commonPrefix(key: string, prefix: string, delimiter: string): string | undefined {
  if (delimiter === '') return undefined;
  const at = key.indexOf(delimiter, prefix.length);
  return at < 0 ? undefined : key.slice(0, at + delimiter.length);
}

function maxKeysOf(query: URLSearchParams): number {
  const given = Number(query.get('max-keys') ?? MAX_KEYS);
  if (!Number.isInteger(given) || given < 0) {
    throw new AwsError('InvalidArgument', 'Provided max-keys not an integer or within integer range');
  }
  return Math.min(given, MAX_KEYS);
}

function facts({ etag, size, modifiedMs }: ObjectVersion): string {
  return (
    element('LastModified', isoTime(modifiedMs)) +
    element('ETag', xml(etag)) +
    element('Size', size) +
    element('StorageClass', 'STANDARD')
  );
}

export function errorDocument(code: string, message: string, resource: string): string {
  return `${DECLARATION}<Error>${element('Code', code)}${element('Message', xml(message))}${element('Resource', xml(resource))}</Error>`;
}

export function document(root: string, parts: string[]): string {
  return `${DECLARATION}<${root} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${parts.join('')}</${root}>`;
}

export function element(name: string, content: string | number | boolean): string {
  return `<${name}>${content}</${name}>`;
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';
const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\r': '&#13;',
  '\n': '&#10;',
};

export function xml(text: string): string {
  return text.replace(/[&<>"\r\n]/g, (character) => ENTITIES[character] ?? character);
}
