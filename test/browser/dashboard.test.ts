import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ShownAlarm } from '../../local/cloud/cloudwatch/cloudwatch.ts';
import { enrolledAgent, publishCommand, startCommand } from '../local/harness/agent-story.ts';
import { incident } from '../local/harness/deliveries.ts';
import { startTestHost, type TestHost } from '../local/harness/test-host.ts';
import { startBrowser, type TestBrowser } from './browser.ts';

let host: TestHost;
let browser: TestBrowser;
beforeAll(async () => {
  [host, browser] = await Promise.all([startTestHost(), startBrowser()]);
});
afterAll(async () => {
  await browser?.stop();
  await host?.stop();
});

const QUESTIONS = [
  'Is it healthy?',
  'Are people the bottleneck?',
  'Are the targets the bottleneck?',
  'What do the agents do?',
  'What does it cost?',
];

/** One command, through an agent. */
async function runCommand(): Promise<void> {
  await publishCommand(host);
  const agent = await enrolledAgent(host, 'shown-1');
  const runId = await startCommand(host);
  const assignment = await agent.take();
  await agent.print(assignment, 0, 'up\n');
  await agent.complete(assignment, 1);
  await host.waitForRun(runId);
}

it('acceptance: the dashboard shows worker assignment, session states, approval latency and command execution SLOs', async () => {
  const runIds = await Promise.all([1, 2, 3].map((number) => host.openIssue(number)));
  const approved = await host.fileIncident(incident('INC0001', { priority: '1' }));
  await host.waitForRun(approved, ({ status }) => status === 'waiting_approval');
  await host.advance(4 * 60_000);
  await host.approve(approved);
  for (const runId of [...runIds, approved]) await host.waitForRun(runId);
  await runCommand();
  // The sweeper must not be silent for the time that is skipped.
  for (const minutes of [0, 2, 2, 2]) {
    await host.advance(minutes * 60_000);
    await host.sweep();
  }

  const opened = await browser.openPage(host.url, '/_local/dashboard', { viewport: { width: 1460, height: 1500 } });
  const { page } = opened;
  await opened.screenshot('dashboard');
  const texts = await page.locator('svg text').allTextContents();
  for (const question of QUESTIONS) expect(texts).toContain(question);
  const lines = await page
    .locator('svg g[data-line]')
    .evaluateAll((all) => all.map((each) => each.getAttribute('data-line')));
  for (const line of ['oldest due row', '4xx', 'steps']) expect(lines).toContain(line);
  const assignments = ['idle', 'offered', 'acknowledged', 'completed'];
  const approvals = ['waiting', 'dev p50', 'dev p95', 'A step starts within 2 s of its decision: at most 1.0%'];
  const commands = ['agent dev', 'Runs end without failing: at most 1.0%'];
  for (const line of ['succeeded', ...assignments, ...approvals, ...commands]) expect(lines).toContain(line);
  const { alarms } = await host.ask<{ alarms: ShownAlarm[] }>('GET', '/_local/alarms');
  expect(alarms.filter(({ state }) => state === 'ALARM').map(({ logicalId }) => logicalId)).toEqual([]);
  expect(texts.find((each) => each.startsWith('Alarms: '))).toBe(`Alarms: 0 of ${alarms.length}`);
  expect(opened.problems).toEqual([]);
});
