import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { evidenceText } from '../../bin/commands/evidence/evidence-text.ts';
import { evidencePage } from '../../bin/commands/evidence/html.ts';
import { verifyBundle } from '../../lambdas/evidence/verify/verify-bundle.ts';
import { parsedDocument, sealedBundle } from '../evidence/bundle/sealed-bundle.ts';
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts';

let browser: TestBrowser;
let server: Server;
let shown: TestPage;
beforeAll(async () => {
  const bundle = await sealedBundle();
  const verdict = verifyBundle(bundle);
  if (!('summary' in verdict)) throw new Error(`the bundle is ${verdict.verdict}`);
  const html = evidencePage(evidenceText({ document: parsedDocument(bundle), addenda: [], verdict }), verdict.verdict);
  server = createServer((_request, response) => response.setHeader('content-type', 'text/html').end(html));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  browser = await startBrowser();
  shown = await browser.openPage(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, '/');
});
afterAll(async () => {
  await browser?.stop();
  await new Promise((resolve) => server?.close(resolve));
});

it('shows each write on one line with complete hashes, and nothing is wider than the page', async () => {
  const { page, problems } = shown;
  await shown.screenshot('evidence');
  const line = await page.locator('h2:has-text("From request to write") + table tbody tr').first().innerText();
  expect(line).toMatch(/ > .* > .* > /);
  expect(line.match(/[0-9a-f]{64}/g)?.length).toBeGreaterThanOrEqual(3);
  expect(await page.locator('h1').innerText()).toContain('rolled back');
  const wide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
  expect(await page.evaluate(wide)).toBe(false);
  expect(problems).toEqual([]);
});

it('fits the width of a printed page', async () => {
  const { page } = shown;
  await page.emulateMedia({ media: 'print' });
  // A4 without margins, at 96 dpi.
  await page.setViewportSize({ width: 718, height: 1047 });
  await shown.screenshot('evidence-print');
  const wide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
  expect(await page.evaluate(wide)).toBe(false);
});
