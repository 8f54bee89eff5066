import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { readAssembly } from '../../../local/template/synthesize.ts';

const { template, codeFolder } = readAssembly(inject('assemblies').local, 'local');
const bundles = Object.entries(template.Resources ?? {})
  .filter(([, { Type }]) => Type === 'AWS::Lambda::Function')
  .map(([logicalId, { Properties }]) => {
    const code = Properties?.Code as { S3Key: string };
    return { logicalId, source: readFileSync(join(codeFolder(code.S3Key), 'index.mjs'), 'utf8') };
  });

/** From the clients and the search for credentials that `@aws-sdk/credential-provider-node` would add. */
const UNUSED = ['SSOServiceException', 'SSOOIDCServiceException', 'STSServiceException', 'credential_process'];
/** Of the SDK: event streams, the cache of endpoint discovery, and the user agent. */
const LEFT_OUT = ['EventStreamCodec', 'mnemonist', 'userAgentMiddleware'];
const KB = 1024;

it('bundles contain no search for credentials and no clients that it would need', () => {
  expect(bundles.length).toBeGreaterThan(20);
  const found = bundles.flatMap(({ logicalId, source }) =>
    UNUSED.filter((text) => source.includes(text)).map((text) => `${logicalId} contains ${text}`),
  );
  expect(found).toEqual([]);
});

it('bundles contain nothing of the SDK that lib/bundle-functions.ts replaces, and evaluate JSONata only when it is used', () => {
  const found = bundles.flatMap(({ logicalId, source }) =>
    LEFT_OUT.filter((text) => source.includes(text)).map((text) => `${logicalId} contains ${text}`),
  );
  expect(found).toEqual([]);
  // It is a file beside the bundles that use it. This is one of its messages.
  const eager = bundles.filter(({ source }) => source.includes('Key in object structure must evaluate to a string'));
  expect(eager.map(({ logicalId }) => logicalId)).toEqual([]);
});

/** With the same settings of the bundler, an import takes time in proportion to the size. `npm run bench` compares the times. */
it.each([
  [/^IntakeGithub/, 665 * KB],
  [/^WorkerStep/, 1010 * KB],
])('the bundle of %s stays below %i bytes', (name, maxBytes) => {
  const sizes = bundles.filter(({ logicalId }) => name.test(logicalId)).map(({ source }) => Buffer.byteLength(source));
  expect(sizes.length).toBeGreaterThan(0);
  for (const size of sizes) expect(size).toBeLessThan(maxBytes);
});
