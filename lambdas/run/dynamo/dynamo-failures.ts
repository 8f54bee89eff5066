import { DynamoDBServiceException } from '@aws-sdk/client-dynamodb';

const THROTTLED = new Set([
  'ProvisionedThroughputExceededException',
  'ThrottlingException',
  'RequestLimitExceeded',
  'RequestThrottledException',
]);
const NETWORK = new Set(['ECONNRESET', 'ECONNREFUSED', 'ETIMEDOUT', 'EPIPE', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH']);

/** Whether the same request may well succeed later: throttled, failed at their end, or never arrived. */
export function isTransient(error: unknown): boolean {
  if (error instanceof DynamoDBServiceException) return error.$fault === 'server' || THROTTLED.has(error.name);
  if (!(error instanceof Error)) return false;
  return error.name === 'TimeoutError' || NETWORK.has((error as Error & { code?: string }).code ?? '');
}
