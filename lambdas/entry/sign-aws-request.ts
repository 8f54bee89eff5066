import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';

export interface AwsCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

interface SignedRequest {
  method?: 'POST' | 'DELETE';
  service: string;
  region: string;
  credentials: AwsCredentials;
  url: URL;
  body: string;
  /** Signed, too. */
  headers?: Record<string, string>;
}

/** The address of a service. Regions in China have another domain. */
export const serviceUrl = (service: string, region: string): string =>
  `https://${service}.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;

/** The headers of a signed request with a JSON body, for `fetch`: one request does not need the client of a service. */
export async function signedHeaders(request: SignedRequest) {
  const { method = 'POST', service, region, credentials, url, body, headers: further } = request;
  const signer = new SignatureV4({ service, region, credentials, sha256: Sha256 });
  const { headers } = await signer.sign({
    method,
    protocol: url.protocol,
    hostname: url.hostname,
    path: url.pathname,
    headers: { host: url.host, 'content-type': 'application/json', ...further },
    body,
  });
  const { host: _fetchSetsIt, ...others } = headers;
  return others;
}

type SourceData = string | ArrayBuffer | ArrayBufferView;
function bytesOf(data: SourceData): string | Uint8Array {
  if (typeof data === 'string') return data;
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}

/** Node's SHA-256 with the interface of the signer. */
class Sha256 {
  readonly #hash: Hash | Hmac;

  constructor(secret?: SourceData) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(secret));
  }

  update(data: SourceData): void {
    this.#hash.update(bytesOf(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
}
