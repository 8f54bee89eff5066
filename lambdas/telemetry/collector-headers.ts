import * as z from 'zod';
import { Cached } from '../entry/cached.ts';
import { type AwsEnvironment, credentialsOf } from '../entry/environment.ts';
import { tryParseJson } from '../entry/parse-json.ts';
import type { Clock } from '../entry/ports.ts';
import { serviceUrl, signedHeaders } from '../entry/sign-aws-request.ts';

const CACHED_MS = 5 * 60_000;
const TIMEOUT_MS = 2_000;
const Headers = z.record(z.string().regex(/^[A-Za-z0-9-]+$/), z.string().regex(/^[ -~]+$/));

/**
 * The headers of the collector, which operators have entered in a secret as JSON: `{"x-api-key": "…"}`. One request: the
 * client of Secrets Manager would add 50 KB to each cold start of the sealer. No error quotes the secret.
 */
export function collectorHeaders(
  aws: AwsEnvironment,
  secretArn: string,
  clock: Clock,
): () => Promise<Record<string, string>> {
  const cache = new Cached<Record<string, string>>(CACHED_MS, clock.now);
  return () => cache.get('headers', () => read(aws, secretArn));
}

async function read(aws: AwsEnvironment, secretArn: string): Promise<Record<string, string>> {
  const url = new URL(aws.AWS_ENDPOINT_URL ?? serviceUrl('secretsmanager', aws.AWS_REGION));
  const body = JSON.stringify({ SecretId: secretArn });
  const headers = await signedHeaders({
    ...{ service: 'secretsmanager', region: aws.AWS_REGION, credentials: credentialsOf(aws), url, body },
    headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': 'secretsmanager.GetSecretValue' },
  });
  const response = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(TIMEOUT_MS) });
  const text = await response.text();
  if (!response.ok) {
    const reason = response.headers.get('x-amzn-errortype') ?? '';
    throw new Error(`the secret of the traces could not be read: ${response.status} ${reason}`.trim());
  }
  const { SecretString = '' } = Object(tryParseJson(text)) as { SecretString?: string };
  const parsed = Headers.safeParse(tryParseJson(SecretString));
  if (!parsed.success) throw new Error('the secret of the traces is not a JSON object of header names and values');
  return parsed.data;
}
