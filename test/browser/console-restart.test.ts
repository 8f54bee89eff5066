import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type SpawnedHost, spawnHost } from '../local/harness/commands.ts';
import { incident } from '../local/harness/deliveries.ts';
import { startBrowser, type TestBrowser } from './browser.ts';
import { goTo, inConsole, realProblems } from './console-people.ts';

const data = mkdtempSync(join(tmpdir(), 'countersign-restart-'));
let host: SpawnedHost;
let browser: TestBrowser;
beforeAll(async () => {
  [host, browser] = await Promise.all([spawnHost('--data', data, '--quiet', '--port', '0'), startBrowser()]);
});
afterAll(async () => {
  await browser?.stop();
  await host?.end('SIGKILL');
  rmSync(data, { recursive: true, force: true });
});

it('after kill -9 of the host, the page says that it is offline, continues by itself, and misses and repeats nothing', async () => {
  const runId = await host.fileIncident(incident('over a restart'));
  await host.waitForRun(runId, ({ status }) => status === 'waiting_approval');
  const olivia = await inConsole(browser, host, 'Olivia Owner');
  const { page } = olivia;
  await goTo(olivia, `/runs/${runId}?view=history`);
  await page.getByText('Waits for approval').first().waitFor();
  expect(await page.getByText('Offline.').count()).toBe(0);
  expect(realProblems(olivia)).toEqual([]);

  await host.end('SIGKILL');
  await page.getByText('Offline.').waitFor();
  expect(await page.getByText('Waits for approval').count()).toBeGreaterThan(0);

  host = await spawnHost('--data', data, '--quiet', '--port', new URL(host.url).port);
  await page.getByText('Offline.').waitFor({ state: 'detached' });
  await host.approve(runId);
  await page.getByText('Succeeded').first().waitFor();
  const { commits } = await host.waitForRun(runId);
  const shown = page.locator('.history > li > .secondary');
  await expect.poll(() => shown.count()).toBe(commits.length);
  const numbers = (await shown.allInnerTexts()).map((text) => Number.parseInt(text, 10));
  expect(numbers).toEqual(commits.map(({ seq }) => seq));
  // While the host was away, requests failed. Nothing else went wrong.
  const expected = /ERR_CONNECTION_(REFUSED|RESET)|ERR_EMPTY_RESPONSE|WebSocket connection/;
  expect(realProblems(olivia).filter((problem) => !expected.test(problem))).toEqual([]);
});
