import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestHost, type TestHost } from '../local/harness/test-host.ts';
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts';

let host: TestHost;
let browser: TestBrowser;
let docs: TestPage;
beforeAll(async () => {
  [host, browser] = await Promise.all([startTestHost(), startBrowser()]);
  docs = await browser.openPage(host.url, '/docs');
});
afterAll(async () => {
  await browser?.stop();
  await host?.stop();
});

it('the documentation of the API lists every operation', async () => {
  const { body } = await host.request<{ paths: Record<string, object> }>('GET', '/openapi.json');
  const areas = docs.page.locator('.opblock-tag');
  await areas.first().waitFor();
  // One area at a time: with more than about a hundred operations open, the page has only those on the screen.
  const shown: (string | null)[] = [];
  for (let index = 0; index < (await areas.count()); index += 1) {
    await areas.nth(index).click();
    await docs.page.locator('.opblock-tag[data-is-open=true]').waitFor();
    await docs.page.locator('.opblock-summary-path').first().waitFor();
    shown.push(
      ...(await docs.page.locator('.opblock-summary-path').evaluateAll((all) => all.map((each) => each.textContent))),
    );
    await areas.nth(index).click();
    await docs.page.locator('.opblock-summary-path').first().waitFor({ state: 'detached' });
  }
  const documented = Object.entries(body.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map(() => path),
  );
  // Long paths contain invisible characters at which lines may break.
  expect(shown.map((path) => path?.replaceAll('\u200b', '')).toSorted()).toEqual(documented.toSorted());
});

it('an operation opens, and can be tried with a key', async () => {
  const { page } = docs;
  await page.getByRole('button', { name: 'Authorize' }).click();
  await page.locator('.modal-ux').getByRole('textbox').first().fill('local-owner-key');
  await page.getByRole('button', { name: 'Apply credentials' }).first().click();
  await page.getByRole('button', { name: 'Close', exact: true }).first().click();

  await page.locator('#operations-tag-Runs').click();
  const operation = page.locator('#operations-Runs-listRuns');
  await operation.getByRole('button', { name: 'GET /api/v1/runs' }).first().click();
  await operation.getByText('limit', { exact: true }).waitFor();
  await operation.getByRole('button', { name: 'Try it out' }).click();
  await operation.getByRole('button', { name: 'Execute' }).click();
  await operation.locator('.live-responses-table').getByText('"nextCursor"').waitFor();
  await docs.screenshot('docs');
});

it('the page makes no request to another host and reports no error', () => {
  expect(docs.requests).toEqual([
    'GET /docs',
    'GET /docs/swagger-ui.css',
    'GET /docs/swagger-ui-bundle.js',
    'GET /docs/start.js',
    'GET /openapi.json',
    // No filter is filled in.
    'GET /api/v1/runs?limit=25',
  ]);
  expect(docs.problems).toEqual([]);
});
