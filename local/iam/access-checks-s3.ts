import type { AccessCheck } from './access-checks.ts';
import type { ConditionContext } from './conditions.ts';

export interface S3Call {
  operation: string;
  bucket: string;
  key?: string;
  query: URLSearchParams;
  headers: Record<string, string>;
  body: Buffer;
}

/** Operations whose IAM action has another name. */
const ACTION_OF: Record<string, string> = {
  HeadObject: 'GetObject',
  HeadBucket: 'ListBucket',
  ListBuckets: 'ListAllMyBuckets',
  ListObjects: 'ListBucket',
  ListObjectsV2: 'ListBucket',
  ListObjectVersions: 'ListBucketVersions',
  CopyObject: 'PutObject',
  CreateMultipartUpload: 'PutObject',
  UploadPart: 'PutObject',
  CompleteMultipartUpload: 'PutObject',
  ListParts: 'ListMultipartUploadParts',
  GetObjectLockConfiguration: 'GetBucketObjectLockConfiguration',
  DeleteObjects: 'DeleteObject',
};

/** Actions that exist in a second form for a named version. */
const VERSIONED_ACTIONS = ['GetObject', 'DeleteObject', 'GetObjectTagging', 'PutObjectTagging', 'GetObjectAttributes'];

/** Headers of a put that need a grant of their own. */
const EXTRA_ACTION_BY_HEADER: Record<string, string> = {
  'x-amz-object-lock-mode': 'PutObjectRetention',
  'x-amz-object-lock-retain-until-date': 'PutObjectRetention',
  'x-amz-object-lock-legal-hold': 'PutObjectLegalHold',
  'x-amz-tagging': 'PutObjectTagging',
  'x-amz-bypass-governance-retention': 'BypassGovernanceRetention',
};

export function s3Checks(call: S3Call): AccessCheck[] {
  const action = ACTION_OF[call.operation] ?? call.operation;
  const versioned = call.query.has('versionId') && VERSIONED_ACTIONS.includes(action);
  const versionedAction = versioned ? action.replace('Object', 'ObjectVersion') : action;
  const extras = Object.entries(EXTRA_ACTION_BY_HEADER).filter(([header]) => call.headers[header] !== undefined);
  const actions = new Set([versionedAction, ...extras.map(([, extra]) => extra)]);
  const context = contextOf(call);
  const checks = resourcesOf(call).flatMap((resource) =>
    [...actions].map((name) => ({ action: `s3:${name}`, resource, context })),
  );
  const copySource = call.headers['x-amz-copy-source'];
  if (!copySource) return checks;
  const source = decodeURIComponent(copySource).replace(/^\//, '').replace(/\?.*$/, '');
  return [...checks, { action: 's3:GetObject', resource: `arn:aws:s3:::${source}` }];
}

function resourcesOf(call: S3Call): string[] {
  if (call.operation === 'ListBuckets') return ['*'];
  const bucketArn = `arn:aws:s3:::${call.bucket}`;
  if (call.operation === 'DeleteObjects') {
    const keys = [...call.body.toString('utf8').matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => key);
    return keys.map((key) => `${bucketArn}/${key}`);
  }
  return [call.key === undefined || call.key === '' ? bucketArn : `${bucketArn}/${call.key}`];
}

function contextOf({ query, headers }: S3Call): ConditionContext {
  const context: ConditionContext = {};
  const [prefix, delimiter, mode] = [query.get('prefix'), query.get('delimiter'), headers['x-amz-object-lock-mode']];
  if (prefix !== null) context['s3:prefix'] = prefix;
  if (delimiter !== null) context['s3:delimiter'] = delimiter;
  if (mode !== undefined) context['s3:object-lock-mode'] = mode;
  const ifNoneMatch = headers['if-none-match'];
  if (ifNoneMatch !== undefined) context['s3:if-none-match'] = ifNoneMatch;
  return context;
}
