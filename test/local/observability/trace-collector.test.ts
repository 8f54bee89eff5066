import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { PutSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Assembly, synthesize } from '../../../local/template/synthesize.ts';
import { tracesIn } from '../../infrastructure/traces-in.ts';
import { decodeOtlp } from '../../telemetry/decode-otlp.ts';
import { temporaryFolder } from '../cloud/wire.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

const SECRET = 'a-credential-of-the-collector';

const folder = temporaryFolder();
let server: Server;
let host: TestHost;
const received: { headers: IncomingHttpHeaders; body: string }[] = [];

/** A stage whose traces go to a collector outside AWS. */
beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      received.push({ headers: request.headers, body });
      response.writeHead(request.headers['x-api-key'] === SECRET ? 200 : 401).end();
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  const cdk = JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', '..', 'cdk.json'), 'utf8'));
  const { local, ...stages } = cdk.context.stages;
  const traces = { url: `http://127.0.0.1:${port}/v1/traces`, secretHeaders: true };
  const changed = { ...stages, local: { ...local, traces } };
  const assembly: Assembly = await synthesize(join(folder.path, 'assembly'), 'local', changed);
  host = await startTestHost({ change: () => assembly });
});
afterAll(async () => {
  await host?.stop();
  server.close();
  folder.remove();
});

it('the stack creates a secret for its headers, which only the sealer may read', () => {
  const found = tracesIn(host.stack);
  expect(found).toMatchObject({ granted: ['secretsmanager:GetSecretValue'] });
  expect(found.secrets).toEqual([found.secret]);
  const readers = host.stack
    .ofType('AWS::IAM::Role')
    .filter(({ properties }) => JSON.stringify(properties.Policies ?? []).includes(String(found.secret)));
  expect(readers.map(({ logicalId }) => logicalId.replace(/[0-9A-F]{8}$/, ''))).toEqual(['EvidenceVaultSealRole']);
});

it('without the header the collector refuses; with the header in the secret it gets the trace; no log has the header', async () => {
  await host.waitForRun(await host.openIssue(301));
  await host.idle();
  expect(received.map(({ headers }) => headers['x-api-key'])).toEqual([undefined]);
  const secrets = new SecretsManagerClient(host.clientConfig());
  const SecretId = tracesIn(host.stack).secret;
  await secrets.send(new PutSecretValueCommand({ SecretId, SecretString: JSON.stringify({ 'x-api-key': SECRET }) }));
  secrets.destroy();
  // Longer than the sealer caches the secret.
  await host.advance(5 * 60_000 + 1_000);
  const { runId } = await host.waitForRun(await host.openIssue(302));
  await host.idle();
  expect(received).toHaveLength(2);
  expect(received[1]?.headers['x-api-key']).toBe(SECRET);
  const [root] = decodeOtlp(JSON.parse(received[1]?.body ?? ''));
  expect(root?.attributes['countersign.run']).toBe(runId);
  expect(host.log.filter((line) => line.includes('a trace was dropped'))).toHaveLength(1);
  expect(host.log.join('\n')).not.toContain(SECRET);
});
