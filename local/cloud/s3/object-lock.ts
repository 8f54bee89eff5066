/** Object Lock: who may shorten or delete what, and when. COMPLIANCE yields to nobody, GOVERNANCE to a declared bypass. */
import { AwsError } from '../../aws/aws.ts';
import type { LockMode, ObjectVersion } from './store.ts';

const DAY_MS = 86_400_000;

export interface Lock {
  mode: LockMode;
  untilMs: number;
}

/** The lock a new version gets: the request's own, or the bucket's default. */
export function newLock(
  bucket: { objectLock: boolean; defaultRetention?: { mode: LockMode; days: number } },
  headers: Record<string, string>,
  nowMs: number,
): Lock | undefined {
  const mode = headers['x-amz-object-lock-mode'];
  const until = headers['x-amz-object-lock-retain-until-date'];
  if (headers['x-amz-object-lock-legal-hold'] !== undefined) {
    throw new AwsError('NotImplemented', 'The local S3 has no legal holds.', 501);
  }
  if (mode === undefined && until === undefined) {
    const rule = bucket.objectLock ? bucket.defaultRetention : undefined;
    return rule === undefined ? undefined : { mode: rule.mode, untilMs: nowMs + rule.days * DAY_MS };
  }
  if (!bucket.objectLock) throw new AwsError('InvalidRequest', 'Bucket is missing Object Lock Configuration');
  if (mode === undefined || until === undefined) {
    throw invalid('x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied');
  }
  return checkedLock(mode, until, nowMs);
}

/** The body of PutObjectRetention. */
export function parseRetention(body: string, nowMs: number): Lock {
  const field = (name: string) => new RegExp(`<${name}>([^<]*)</${name}>`).exec(body)?.[1];
  const mode = field('Mode');
  const until = field('RetainUntilDate');
  if (mode === undefined || until === undefined) {
    throw new AwsError('MalformedXML', 'The XML you provided was not well-formed or did not validate');
  }
  return checkedLock(mode, until, nowMs);
}

function checkedLock(mode: string, until: string, nowMs: number): Lock {
  const untilMs = Date.parse(until);
  if (mode !== 'GOVERNANCE' && mode !== 'COMPLIANCE') throw invalid('Unknown wormMode directive.');
  if (Number.isNaN(untilMs)) throw invalid('The retain until date must be provided in ISO 8601 format');
  if (untilMs <= nowMs) throw invalid('The retain until date must be in the future!');
  return { mode, untilMs };
}

/** Until when a version may not be deleted, if it still is locked for this caller. */
export function lockedUntil(version: ObjectVersion, nowMs: number, bypass: boolean): number | undefined {
  const { lockMode, retainUntilMs } = version;
  if (lockMode === null || retainUntilMs === null || retainUntilMs <= nowMs) return undefined;
  return lockMode === 'GOVERNANCE' && bypass ? undefined : retainUntilMs;
}

export function checkRetentionChange(version: ObjectVersion, wanted: Lock, nowMs: number, bypass: boolean): void {
  const untilMs = lockedUntil(version, nowMs, bypass);
  if (untilMs === undefined) return;
  const strengthens = wanted.mode === version.lockMode || wanted.mode === 'COMPLIANCE';
  if (wanted.untilMs < untilMs || !strengthens) {
    throw new AwsError('AccessDenied', 'Access Denied because object protected by object lock.', 403);
  }
}

function invalid(message: string): AwsError {
  return new AwsError('InvalidArgument', message);
}
