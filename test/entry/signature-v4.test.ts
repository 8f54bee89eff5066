import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import { KMSClient } from '@aws-sdk/client-kms';
import { SignatureV4 as OfPackage } from '@smithy/signature-v4';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SignatureV4 as Own } from '../../lambdas/entry/bundle-replacements/signature-v4.ts';
import { serviceUrl } from '../../lambdas/entry/sign-aws-request.ts';
import { anyCharacter } from '../fakes/any-character.ts';

const SEED = 20_261_118;
const SignatureV4 = Own as unknown as typeof OfPackage;

class Sha256 {
  readonly #hash: Hash | Hmac;
  constructor(secret?: Uint8Array | string) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret);
  }
  update(data: Uint8Array | string): void {
    this.#hash.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
}

const text = fc.string({ minLength: 1, maxLength: 40 });
const credentials = fc.record(
  {
    accessKeyId: fc.constantFrom('AKIA1', 'AKIA2'),
    secretAccessKey: fc.constantFrom('first secret', 'second secret'),
    sessionToken: fc.constantFrom('token', 'another'),
  },
  { requiredKeys: ['accessKeyId', 'secretAccessKey'] },
);
const signings = fc.record({
  credentials,
  region: fc.constantFrom('us-east-1', 'eu-central-1'),
  service: fc.constantFrom('dynamodb', 's3', 'sqs'),
  uriEscapePath: fc.boolean(),
  signingService: fc.option(fc.constant('kms'), { nil: undefined }),
  signingDate: fc.constantFrom(new Date('2026-11-18T06:00:00Z'), new Date('2026-11-19T06:00:00Z')),
  path: fc.webPath(),
  query: fc.dictionary(fc.constantFrom('a', 'b c', 'X-Id'), text, { maxKeys: 3 }),
  body: fc.oneof(fc.string({ unit: anyCharacter, maxLength: 200 }), fc.uint8Array({ maxLength: 200 })),
  target: fc.constantFrom('DynamoDB_20120810.Query', ' two  spaces '),
});

it('signs every request as @smithy/signature-v4 does, in any order of credentials, services, regions and days', async () => {
  await fc.assert(
    fc.asyncProperty(signings, async ({ signingService, signingDate, path, query, body, target, ...settings }) => {
      const request = () => ({
        method: 'POST',
        protocol: 'https:',
        hostname: 'service.example.com',
        path: path === '' ? '/' : path,
        query: { ...query },
        headers: { host: 'service.example.com', 'x-amz-target': target },
        body,
      });
      const options = { signingDate, ...(signingService !== undefined && { signingService }) };
      const parameters = { ...settings, sha256: Sha256 as never };
      const [own, ofPackage] = [new SignatureV4(parameters), new OfPackage(parameters)];
      expect(await own.sign(request(), options)).toEqual(await ofPackage.sign(request(), options));
      expect(await own.presign(request(), options)).toEqual(await ofPackage.presign(request(), options));
    }),
    { seed: SEED, numRuns: 200 },
  );
});

it('a request without a client of the SDK goes to the same address as one with it, in China, too', async () => {
  for (const region of ['eu-west-1', 'us-gov-west-1', 'cn-north-1']) {
    const client = new KMSClient({ region });
    const { hostname } = client.config.endpointProvider({ Region: region }).url;
    expect(serviceUrl('kms', region)).toBe(`https://${hostname}`);
  }
});
