import { type AwsEnvironment, credentialsOf } from './environment.ts';
import { type AwsCredentials, signedHeaders } from './sign-aws-request.ts';

export interface InvokedFunction {
  functionName: string;
  region: string;
  /** Set where AWS is emulated, as on the local host. */
  endpoint?: string | undefined;
  credentials: AwsCredentials;
}

/** API Gateway waits for 30 s, and the invoked functions have shorter timeouts. */
const INVOKE_TIMEOUT_MS = 28_000;

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
 * Lets Lambda invoke a function soon, and does not wait for it. Lambda may invoke it twice, repeats an invocation that failed
 * one and two minutes later, and drops it after that.
 */
export async function invokeLater(invoked: InvokedFunction, event: unknown): Promise<void> {
  await invoke(invoked, event, { 'x-amz-invocation-type': 'Event' });
}

async function invoke(invoked: InvokedFunction, event: unknown, further: Record<string, string> = {}): Promise<string> {
  const { functionName, region, endpoint, credentials } = invoked;
  const path = `/2015-03-31/functions/${encodeURIComponent(functionName)}/invocations`;
  const url = new URL(path, endpoint ?? `https://lambda.${region}.${regionDomain(region)}`);
  const body = JSON.stringify(event);
  const headers = await signedHeaders({ service: 'lambda', region, credentials, url, body, headers: further });
  const signal = AbortSignal.timeout(INVOKE_TIMEOUT_MS);
  const response = await fetch(url, { method: 'POST', headers, body, signal });
  const text = await response.text();
  const failed = response.headers.get('x-amz-function-error');
  if (response.ok && failed === null) return text;
  const refused = response.headers.get('x-amzn-errortype')?.split(':')[0];
  throw new InvocationFailed(functionName, failed ?? refused ?? 'unknown', response.status);
}

const regionDomain = (region: string): string => (region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com');
