import * as z from 'zod';
import { type AwsEnvironment, credentialsOf } from '../../entry/environment.ts';
import { serviceUrl, signedHeaders } from '../../entry/sign-aws-request.ts';
import type { SigningAlgorithm } from '../environment.ts';
import type { Signer } from '../evidence-store.ts';

const TIMEOUT_MS = 3_000;
const Signed = z.object({ KeyId: z.string(), Signature: z.base64() });

/** Signs with KMS in one request. The worker needs nothing else of KMS, and its client would add 100 KB to each cold start. */
export class KmsSignRequest implements Pick<Signer, 'sign'> {
  readonly #aws: AwsEnvironment;
  readonly #keyArn: string;
  readonly #algorithm: SigningAlgorithm;

  constructor(aws: AwsEnvironment, keyArn: string, algorithm: SigningAlgorithm) {
    this.#aws = aws;
    this.#keyArn = keyArn;
    this.#algorithm = algorithm;
  }

  async sign(message: Buffer): Promise<{ keyId: string; signature: Buffer }> {
    const aws = this.#aws;
    const url = new URL(aws.AWS_ENDPOINT_URL ?? serviceUrl('kms', aws.AWS_REGION));
    const body = JSON.stringify({
      KeyId: this.#keyArn,
      Message: message.toString('base64'),
      MessageType: 'RAW',
      SigningAlgorithm: this.#algorithm,
    });
    const headers = await signedHeaders({
      service: 'kms',
      region: aws.AWS_REGION,
      credentials: credentialsOf(aws),
      url,
      body,
      headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': 'TrentService.Sign' },
    });
    const response = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) {
      // The body of an error may quote the request.
      await response.body?.cancel();
      throw new Error(`KMS did not sign: ${response.status} ${response.headers.get('x-amzn-errortype') ?? ''}`.trim());
    }
    const { KeyId, Signature } = Signed.parse(await response.json());
    return { keyId: KeyId, signature: Buffer.from(Signature, 'base64') };
  }
}
