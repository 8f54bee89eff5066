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
    const { status, ok } = await this.#request('POST', connectionId, message);
    if (status === GONE) return 'gone';
    if (ok) return 'sent';
    throw new Error(`the connection took no message: ${status}`);
  }

  async disconnect(connectionId: string): Promise<void> {
    const { status, ok } = await this.#request('DELETE', connectionId);
    if (!ok && status !== GONE) throw new Error(`the connection was not closed: ${status}`);
  }

  async #request(method: 'POST' | 'DELETE', connectionId: string, body = ''): Promise<Response> {
    const aws = this.#aws;
    const url = new URL(
      `${this.#callbackUrl.href.replace(/\/$/, '')}/@connections/${encodeURIComponent(connectionId)}`,
    );
    const request = { service: 'execute-api', region: aws.AWS_REGION, credentials: credentialsOf(aws), url, body };
    const headers = await signedHeaders({ ...request, method });
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(url, { method, headers, signal, ...(method === 'POST' && { body }) });
    await response.body?.cancel();
    return response;
  }
}
