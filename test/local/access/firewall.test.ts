import { afterAll, beforeAll, expect, it } from 'vitest';
import { ORIGIN_HEADER } from '../../../lambdas/entry/own-domain.ts';
import { githubRequest, issueOpened } from '../harness/deliveries.ts';
import { ACME_KEY } from '../harness/host-client.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

const ORIGIN_SECRET = 'what-cloudfront-sends-with-every-request-that-passed';
const DOMAIN = 'countersign.example.com';

/** Every function has the environment that a stage with a firewall gives to those that API Gateway invokes. */
function behindFirewall(template: object): void {
  const { Resources } = template as {
    Resources: Record<string, { Type: string; Properties: Record<string, unknown> }>;
  };
  for (const { Type, Properties } of Object.values(Resources)) {
    if (Type !== 'AWS::Lambda::Function') continue;
    const { Variables } = (Properties.Environment ?? {}) as { Variables?: object };
    Properties.Environment = { Variables: { ...Variables, DOMAIN, ORIGIN_SECRET } };
  }
}

let host: TestHost;
beforeAll(async () => {
  host = await startTestHost({
    change: (assembly) => {
      const template = structuredClone(assembly.template);
      behindFirewall(template);
      return { ...assembly, template };
    },
  });
});
afterAll(() => host.stop());

it('requests that did not pass the firewall are refused, also signed ones, and start nothing', async () => {
  const direct = await host.api('/me');
  expect(direct).toMatchObject({ status: 403, body: { detail: expect.stringContaining(`https://${DOMAIN}`) } });
  expect((await host.sendGithub(issueOpened(1))).status).toBe(403);
  const headers = { 'x-api-key': ACME_KEY, [ORIGIN_HEADER]: ORIGIN_SECRET };
  const runs = await host.request<{ runs: unknown[] }>('GET', '/api/v1/runs', { headers });
  expect(runs).toMatchObject({ status: 200, body: { runs: [] } });
});

it('requests that CloudFront passes on are handled, and see the domain name of the stage', async () => {
  const passed = { [ORIGIN_HEADER]: ORIGIN_SECRET };
  const { path, headers, body } = githubRequest(issueOpened(2));
  expect((await host.request('POST', path, { headers: { ...headers, ...passed }, body })).status).toBe(202);
  const metadata = await host.request('GET', '/.well-known/oauth-protected-resource/mcp', { headers: passed });
  expect(metadata.body).toMatchObject({ resource: expect.stringContaining(`//${DOMAIN}/mcp`) });
});
