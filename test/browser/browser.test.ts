import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startBrowser, type TestBrowser } from './browser.ts';

let browser: TestBrowser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser?.stop());

const SCRIPT = `
console.error('reported');
fetch('/missing').then(() => { throw new Error('not caught'); });
fetch('https://example.com/data').catch(() => undefined);
`;

const server = createServer(({ url }, response) => {
  if (url === '/script.js') return response.setHeader('content-type', 'text/javascript').end(SCRIPT);
  if (url === '/quiet') return response.end('<link rel="icon" href="data:,"><p>Quiet</p>');
  if (url !== '/') return response.writeHead(404).end();
  response.setHeader('content-type', 'text/html').setHeader('content-security-policy', "script-src 'self'");
  response.end('<link rel="icon" href="data:,"><script>var inline;</script><script src="script.js"></script>');
});
beforeAll(() => new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening)));
afterAll(() => server.close());
const url = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

it('a page of the test browser reports every kind of problem', async () => {
  const { page, problems } = await browser.openPage(url(), '/');
  await page.waitForLoadState('networkidle');
  for (const problem of [
    /^console: reported$/,
    /^uncaught: not caught$/,
    /^CSP: script-src-elem blocks inline$/,
    /^failed: GET \/missing: 404$/,
    /^external: https:\/\/example.com\/data$/,
    /^failed: GET https:\/\/example.com\/data: net::ERR_NAME_NOT_RESOLVED$/,
  ]) {
    expect(problems).toContainEqual(expect.stringMatching(problem));
  }
});

it('a page without problems reports none', async () => {
  const { page, problems } = await browser.openPage(url(), '/quiet');
  expect([await page.getByText('Quiet').count(), problems]).toEqual([1, []]);
});
