import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DynamoOutputStore } from '../../lambdas/agents/dynamo-output-store.ts';
import { NO_OUTPUT } from '../../lambdas/agents/output.ts';
import { ask, enrolledAgent, publishCommand, type StoryAgent, startCommand } from '../local/harness/agent-story.ts';
import { incident } from '../local/harness/deliveries.ts';
import { startTestHost, type TestHost } from '../local/harness/test-host.ts';
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts';
import { goTo, inConsole, realProblems, tabTo } from './console-people.ts';

let host: TestHost;
let browser: TestBrowser;
let olivia: TestPage;
beforeAll(async () => {
  [host, browser] = await Promise.all([startTestHost(), startBrowser()]);
  olivia = await inConsole(browser, host, 'Olivia Owner');
});
afterAll(async () => {
  await browser?.stop();
  await host?.stop();
});

/** The text of the row of the output with this number. */
const shownLines = ({ page }: TestPage) => page.locator('.output-line').allInnerTexts();
const rowsOf = ({ page }: TestPage, selector: string) => page.locator(selector).count();

describe('keyboard only', () => {
  it('an approver signs in, opens the first approval of the inbox and approves it', async () => {
    const runId = await host.fileIncident(incident('by keyboard'));
    await host.waitForRun(runId, ({ status }) => status === 'waiting_approval');
    const ben = await browser.openPage(host.url, '/');
    const { page } = ben;
    await page.getByRole('button', { name: 'Sign in to acme' }).waitFor();
    await tabTo(page, /^Sign in to acme/);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Ben Okafor' }).waitFor();
    await tabTo(page, /^Ben Okafor/);
    await page.keyboard.press('Enter');
    await page.locator('.inbox-item').first().waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Approve', exact: true }).waitFor();
    await page.keyboard.press('a');
    await page.keyboard.press('Enter');
    await page.getByText('Approved. The write is made now.').waitFor();
    expect(await host.waitForRun(runId)).toMatchObject({ status: 'succeeded' });
    expect(realProblems(ben)).toEqual([]);
    await ben.close();
  });

  it('an operator finds a run in the list, reads its steps and cancels it with a reason', async () => {
    const runId = await host.fileIncident(incident('to be canceled'));
    await host.waitForRun(runId, ({ status }) => status === 'waiting_approval');
    const oscar = await inConsole(browser, host, 'Oscar Operator');
    const { page } = oscar;
    await page.keyboard.press('u');
    await page.getByRole('table', { name: 'Runs' }).waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await page.keyboard.press('k');
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/runs/${runId}`);
    await page.getByRole('listbox').waitFor();
    await page.keyboard.press('j');
    await page.getByText('The run has not reached this step.').waitFor();
    await tabTo(page, 'Cancel the run');
    await page.keyboard.press('Enter');
    await page.keyboard.type('the incident is a test');
    await tabTo(page, 'Cancel the run');
    await page.keyboard.press('Enter');
    const canceled = await host.waitForRun(runId, ({ status }) => status === 'canceled');
    expect(JSON.stringify(canceled.commits)).toContain('the incident is a test');
    expect(realProblems(oscar)).toEqual([]);
    await oscar.close();
  });

  it('j and k move through every list, and / goes to its filter', async () => {
    const { page } = olivia;
    for (const path of [
      '/runs',
      '/automations',
      '/workflows',
      '/workflows/triage-incident/versions',
      '/settings/people',
      '/settings/connections',
      '/settings/keys',
      '/settings/changes',
    ]) {
      await goTo(olivia, path);
      const rows = page.locator('.list-table tbody tr');
      await rows.first().waitFor();
      await page.keyboard.press('j');
      expect([path, await focusedRow(olivia)]).toEqual([path, 0]);
      await page.keyboard.press('j');
      const second = Math.min(1, (await rows.count()) - 1);
      expect([path, await focusedRow(olivia)]).toEqual([path, second]);
      await page.keyboard.press('k');
      expect([path, await focusedRow(olivia)]).toEqual([path, 0]);
    }
    await page.keyboard.press('/');
    expect(await page.evaluate('document.activeElement.closest("search") !== null')).toBe(true);
  });
});

const focusedRow = ({ page }: TestPage) =>
  page.evaluate(
    `[...document.querySelectorAll('.list-table tbody tr')].findIndex((row) => row.contains(document.activeElement))`,
  );

describe('the output of a command', () => {
  let agent: StoryAgent;
  let runId: string;
  beforeAll(async () => {
    await publishCommand(host);
    agent = await enrolledAgent(host, 'printer-1');
    runId = await startCommand(host);
  });

  it('appears while the command runs, is shown as text, and can be searched and downloaded', async () => {
    const { page } = olivia;
    const assignment = await agent.take();
    await goTo(olivia, `/runs/${runId}`);
    const output = page.getByRole('log', { name: 'Output' });
    await output.waitFor();
    await agent.print(assignment, 0, 'starting\n\u001b[32mok\u001b[0m <img src=x onerror=alert(1)> \u202egnp\n');
    await output.getByText('starting').waitFor();
    await agent.print(assignment, 1, 'half a ');
    await output.getByText('half a').waitFor();
    await agent.print(assignment, 2, 'line\nthe last line\n');
    await output.getByText('the last line').waitFor();
    expect((await shownLines(olivia)).map((line) => line.trimEnd())).toEqual([
      'starting',
      'ok <img src=x onerror=alert(1)> ⟦U+202E⟧gnp',
      'half a line',
      'the last line',
    ]);
    expect(await page.locator('img').count()).toBe(0);
    await agent.complete(assignment, 3);
    await page.getByText('The command has ended.').waitFor();
    await page.getByRole('searchbox', { name: 'Search the output' }).fill('LINE');
    await page.getByText('1 of 2').waitFor();
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download' }).click(),
    ]);
    const parts: Buffer[] = [];
    for await (const part of await file.createReadStream()) parts.push(part as Buffer);
    expect(Buffer.concat(parts).toString()).toContain('half a line\nthe last line\n');
    expect(file.suggestedFilename()).toBe(`${runId}-step-1.txt`);
  });

  it('of 10 MB has few rows on the page, is searched as a whole, and moving in it is quick', async () => {
    const { page } = olivia;
    const large = await startCommand(host);
    const assignment = await agent.take();
    await storeOutput(large, 10 * 1024 * 1024);
    await agent.complete(assignment, 0).catch(() => undefined);
    await goTo(olivia, `/runs/${large}`);
    await page.getByText(/^131,072 lines/).waitFor();
    expect(await rowsOf(olivia, '.output-line')).toBeLessThan(100);
    await page.getByRole('searchbox', { name: 'Search the output' }).fill('line 131071');
    await page.getByText('1 of 1').waitFor();
    const cpu = await cpuOf(olivia, async () => {
      for (let each = 0; each < 20; each += 1) {
        await page.getByRole('log', { name: 'Output' }).evaluate((box, top) => box.scrollTo(0, top), each * 100_000);
        await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
      }
    });
    expect(cpu.msPerCall(20)).toBeLessThan(100);
    expect(await rowsOf(olivia, '.output-line')).toBeLessThan(100);
  });
});

/** As many lines as these bytes have, stored as the API stores what agents send. */
async function storeOutput(runId: string, bytes: number): Promise<void> {
  const client = new DynamoDBClient(host.clientConfig());
  const store = new DynamoOutputStore(client, host.tableName, { now: () => Date.now() });
  const [step] = (await host.run(runId)).steps as unknown as { leaseVersion: number }[];
  const command = { tenant: 'acme', runId, stepIndex: 0, leaseVersion: step?.leaseVersion ?? 1 };
  const line = (number: number) => `line ${number} `.padEnd(79, '.').concat('\n');
  const lines = bytes / 80;
  const perChunk = 512;
  const chunks = Array.from({ length: lines / perChunk }, (_, seq) => ({
    seq,
    stream: 'stdout' as const,
    at: new Date().toISOString(),
    data: Array.from({ length: perChunk }, (_, each) => line(seq * perChunk + each)).join(''),
  }));
  for (let from = 0, revision = 1; from < chunks.length; from += 32, revision += 1) {
    const part = chunks.slice(from, from + 32);
    await store.append(command, part, { ...NO_OUTPUT, nextSeq: from + part.length, bytes: from * 40_960, revision });
  }
  client.destroy();
}

/** The time that the page computed, without the time that it waited for a busy machine. */
async function cpuOf({ page }: TestPage, act: () => Promise<void>) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
  const spent = async () => {
    const { metrics } = await devtools.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN;
  };
  const before = await spent();
  await act();
  const seconds = (await spent()) - before;
  await devtools.detach();
  return { msPerCall: (calls: number) => (seconds * 1000) / calls };
}

describe('a run with 1,000 steps', () => {
  it('has few rows on the page, and moving through its steps is quick', async () => {
    const { page } = olivia;
    const steps = Array.from(
      { length: 1_000 },
      (_, index) => `  - {id: s${index}, tool: transform, with: {n: ${index}}}`,
    );
    const body = `name: thousand\nsteps:\n${steps.join('\n')}\n`;
    await ask(host, 'POST', '/workflows', { body, headers: { 'content-type': 'application/yaml' } });
    const { runId } = await ask<{ runId: string }>(host, 'POST', '/runs', { body: { workflow: { name: 'thousand' } } });
    await host.waitForRun(runId, ({ status }) => status === 'succeeded');
    await goTo(olivia, `/runs/${runId}`);
    await page.getByRole('listbox', { name: '1000 steps' }).waitFor();
    expect(await rowsOf(olivia, '.step-row')).toBeLessThan(60);
    const cpu = await cpuOf(olivia, async () => {
      for (let each = 0; each < 30; each += 1) await page.keyboard.press('k');
    });
    await page.getByRole('heading', { name: /s969$/ }).waitFor();
    expect(cpu.msPerCall(30)).toBeLessThan(100);
    await page.getByRole('link', { name: 'Timeline' }).click();
    await page.getByText('Steps 901 to 1000 of 1000').waitFor();
    expect(await rowsOf(olivia, '.timeline svg *')).toBeLessThan(1_000);
    await page.getByRole('button', { name: 'Earlier steps' }).click();
    await page.getByText('Steps 801 to 900 of 1000').waitFor();
  });
});

it('no page has caused an error', () => {
  expect(realProblems(olivia)).toEqual([]);
});
