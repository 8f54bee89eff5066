import { type AwsEnvironment, credentialsOf } from './environment.ts';
import { type AwsCredentials, serviceUrl, signedHeaders } from './sign-aws-request.ts';

export interface InvokedFunction {
  functionName: string;
  region: string;
  /** Set where AWS is emulated, as on the local host. */
  endpoint?: string | undefined;
  credentials: AwsCredentials;
}

/** API Gateway waits for 30 s, and the invoked functions have shorter timeouts. */
const INVOKE_TIMEOUT_MS = 28_000;
/** Lambda only stores the event. The caller has other work to do. */
const INVOKE_LATER_TIMEOUT_MS = 3_000;

/** AWS refused to invoke the function, or the function failed. */
export class InvocationFailed extends Error {
  override name = 'InvocationFailed';
  /** `AccessDeniedException`, `ResourceNotFoundException`, `TooManyRequestsException`; `Unhandled` if the function failed. */
  readonly reason: string;
  constructor(functionName: string, reason: string, status: number) {
    super(`invoking ${functionName} failed: ${reason} (${status})`);
    this.reason = reason;
  }
}

/** A function of the same account. */
export const invokedIn = (aws: AwsEnvironment, functionName: string): InvokedFunction => ({
  functionName,
  region: aws.AWS_REGION,
  endpoint: aws.AWS_ENDPOINT_URL,
  credentials: credentialsOf(aws),
});

/** Invokes a function and returns its result. */
export async function invokeFunction(invoked: InvokedFunction, event: unknown): Promise<unknown> {
  return JSON.parse(await invoke(invoked, event));
}

/**
 * Lets Lambda invoke a function soon, and does not wait for it. Lambda may invoke it twice, or not at all.
 */
export async function invokeLater(invoked: InvokedFunction, event: unknown): Promise<void> {
  const asEvent = { 'x-amz-invocation-type': 'Event' };
  await invoke(invoked, event, { headers: asEvent, timeoutMs: INVOKE_LATER_TIMEOUT_MS });
}

async function invoke(
  invoked: InvokedFunction,
  event: unknown,
  {
    headers: further = {},
    timeoutMs = INVOKE_TIMEOUT_MS,
  }: { headers?: Record<string, string>; timeoutMs?: number } = {},
): Promise<string> {
  const { functionName, region, endpoint, credentials } = invoked;
  const path = `/2015-03-31/functions/${encodeURIComponent(functionName)}/invocations`;
  const url = new URL(path, endpoint ?? serviceUrl('lambda', region));
  const body = JSON.stringify(event);
  const headers = await signedHeaders({ service: 'lambda', region, credentials, url, body, headers: further });
  const signal = AbortSignal.timeout(timeoutMs);
  const response = await fetch(url, { method: 'POST', headers, body, signal });
  const text = await response.text();
  const failed = response.headers.get('x-amz-function-error');
  if (response.ok && failed === null) return text;
  const refused = response.headers.get('x-amzn-errortype')?.split(':')[0];
  throw new InvocationFailed(functionName, failed ?? refused ?? 'unknown', response.status);
}
