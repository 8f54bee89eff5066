import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestHost, type TestHost } from '../local/harness/test-host.ts';
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts';
import { accessibilityProblems, goTo, inConsole, problemsWhileClockMoves } from './console-people.ts';

let host: TestHost;
let browser: TestBrowser;
let owner: TestPage;
beforeAll(async () => {
  [host, browser] = await Promise.all([startTestHost(), startBrowser()]);
  owner = await inConsole(browser, host, 'Olivia Owner', '/settings');
});
afterAll(async () => {
  await owner?.close();
  await browser?.stop();
  await host?.stop();
});

it('an owner switches writes off; every page says so, a run says why it waits, and the run page has one pane', async () => {
  const { page } = owner;
  await page.getByRole('checkbox', { name: 'Writes' }).uncheck();
  await page.getByRole('checkbox', { name: 'Task workspace' }).uncheck();
  await page.getByText('features.writes.enabled=false').waitFor();
  await page.getByRole('button', { name: 'Save the settings' }).click();
  await page.getByText('The settings are saved.').waitFor();
  const saved = await host.api<{ features: unknown }>('/settings');
  expect(saved.body.features).toEqual({ 'writes.enabled': false, 'ui.task_workspace.enabled': false });
  await page.getByText('Writes: switched off.').waitFor();

  await host.advance(61_000);
  const runId = await host.openIssue(7);
  await host.waitForRun(runId, ({ status }) => status === 'failed_retryable');
  await goTo(owner, `/runs/${runId}`);
  await page.getByText('Step label waits: writes.enabled is off').waitFor();
  await page.getByText('Writes: switched off.').waitFor();
  expect(await page.locator('.workspace').count()).toBe(0);
  await page.getByRole('complementary', { name: 'Actions' }).waitFor();
  expect(await accessibilityProblems(owner)).toEqual([]);

  await goTo(owner, '/settings');
  await page.getByRole('checkbox', { name: 'Writes' }).check();
  await page.getByRole('checkbox', { name: 'Task workspace' }).check();
  await page.getByRole('button', { name: 'Save the settings' }).click();
  await expect.poll(() => page.getByText('Writes: switched off.').count()).toBe(0);
  await host.letTimePassUntil([runId], ({ status }) => status === 'succeeded');
  await goTo(owner, `/runs/${runId}`);
  await page.locator('.workspace').waitFor();
  expect(problemsWhileClockMoves(owner)).toEqual([]);
});

/** As another owner would. */
async function saveFeatures(features: Record<string, boolean>): Promise<void> {
  const headers = { 'x-api-key': 'local-owner-key' };
  const { status } = await host.request('PUT', '/api/v1/settings', { headers, body: JSON.stringify({ features }) });
  expect(status).toBe(200);
}

it.each([
  ['before the page has read it', false],
  ['and the page has read it', true],
])('writes that somebody switches off while another edits the settings stay off (%s)', async (_when, isRead) => {
  const { page } = owner;
  await saveFeatures({});
  await goTo(owner, '/settings');
  await page.getByRole('textbox', { name: 'Channel for approvals' }).fill(`#channel-${isRead}`);
  await saveFeatures({ 'writes.enabled': false });
  if (isRead) {
    await page.reload();
    await page.getByText('Writes: switched off.').waitFor();
  }
  await page.getByRole('button', { name: 'Save the settings' }).click();
  await page.getByText('The settings are saved.').waitFor();
  expect((await host.api('/settings')).body).toMatchObject({
    approvalsChannel: `#channel-${isRead}`,
    features: { 'writes.enabled': false },
  });
});
