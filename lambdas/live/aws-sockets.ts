import { type AwsEnvironment, credentialsOf } from '../entry/environment.ts';
import { signedHeaders } from '../entry/sign-aws-request.ts';
import type { Sockets } from './live-store.ts';

/** A connection that does not take a message in this time gets no more of this batch. */
const TIMEOUT_MS = 2_000;
const GONE = 410;

/** Sends through the management API of the WebSocket API. Signed requests: the client of the service would add 60 KB. */
export class AwsSockets implements Sockets {
  readonly #aws: AwsEnvironment;
  readonly #callbackUrl: URL;

  /** `callbackUrl`: `https://{api}.execute-api.{region}.amazonaws.com/{stage}` */
  constructor(aws: AwsEnvironment, callbackUrl: string) {
    this.#aws = aws;
    const { pathname } = new URL(callbackUrl);
    this.#callbackUrl = aws.AWS_ENDPOINT_URL ? new URL(pathname, aws.AWS_ENDPOINT_URL) : new URL(callbackUrl);
  }

  async send(connectionId: string, message: string): Promise<'sent' | 'gone'> {
    const aws = this.#aws;
    const url = new URL(
      `${this.#callbackUrl.href.replace(/\/$/, '')}/@connections/${encodeURIComponent(connectionId)}`,
    );
    const headers = await signedHeaders({
      service: 'execute-api',
      region: aws.AWS_REGION,
      credentials: credentialsOf(aws),
      url,
      body: message,
    });
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(url, { method: 'POST', headers, body: message, signal });
    await response.body?.cancel();
    if (response.status === GONE) return 'gone';
    if (response.ok) return 'sent';
    throw new Error(`the connection took no message: ${response.status}`);
  }
}
