import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { APPROVER_KEY } from '../local/harness/host-client.ts';
import { asks, ISSUE, sessionOf } from '../local/harness/session-story.ts';
import { startTestHost, type TestHost } from '../local/harness/test-host.ts';
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts';
import { accessibilityProblems, expectToFit, goTo, inConsole, realProblems } from './console-people.ts';

const NAME = 'triage-in-words';
const HOSTILE = '<img src=x onerror=alert(1)>';
const SESSION = {
  actions: [
    { tool: 'github.labels.add', with: ISSUE },
    { tool: 'github.workflow.dispatch', with: { owner: 'octo-org', repo: 'payments' } },
  ],
  maxActions: 2,
  context: {
    script: JSON.stringify({
      actions: [
        { tool: 'github.labels.add', input: { labels: ['by-session'] } },
        { tool: 'github.workflow.dispatch', input: { workflow: 'deploy.yml', ref: 'main' } },
        { tool: 'github.labels.add', input: { labels: ['too-many'] } },
      ],
    }),
  },
};

let host: TestHost;
let browser: TestBrowser;
let person: TestPage;
let runId: string;
beforeAll(async () => {
  [host, browser] = await Promise.all([startTestHost(), startBrowser()]);
  person = await inConsole(browser, host, 'Olivia Owner', '/new-automation');
});
afterAll(async () => {
  await browser?.stop();
  await host?.stop();
});

/** The page has no axe violation in both themes, and fits into 400 px. */
async function expectFine(name: string): Promise<void> {
  const { page } = person;
  for (const theme of ['light', 'dark']) {
    await page.getByLabel('Theme').selectOption(theme);
    expect([theme, await accessibilityProblems(person)]).toEqual([theme, []]);
    await person.screenshot(`${name}-${theme}`);
  }
  await page.setViewportSize({ width: 400, height: 900 });
  await expectToFit(person);
  await person.screenshot(`${name}-400`);
  await page.setViewportSize({ width: 1280, height: 900 });
}

describe('an automation with instructions', () => {
  it('is added, shown and changed in the console', async () => {
    const { page } = person;
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill(NAME);
    await page.getByLabel('Started by').selectOption('manual');
    await page.getByLabel('Starts', { exact: true }).selectOption('session');
    await page.getByRole('textbox', { name: 'Instructions' }).fill(`Propose a label. ${HOSTILE}`);
    await page
      .getByRole('textbox', { name: 'Context and actions of the session, as JSON' })
      .fill(JSON.stringify(SESSION));
    await page.getByLabel('Where its sessions run').selectOption('agent_decide');
    await page.getByRole('textbox', { name: 'Configurations to pick from' }).fill('triage-agent');
    await page.getByRole('combobox', { name: 'Fallback' }).fill('triage-agent');
    await expectFine('automation-form-session');
    await page.getByRole('button', { name: 'Add the automation' }).click();
    await page.getByRole('heading', { name: NAME }).waitFor();
    const saved = { instructions: `Propose a label. ${HOSTILE}`, session: SESSION };
    expect((await host.api(`/automations/${NAME}`)).body).toMatchObject({
      ...saved,
      workflow: { name: `automation.${NAME}`, version: 1 },
      configuration: { strategy: 'agent_decide', allow: ['triage-agent'], fallback: 'triage-agent' },
    });

    await page.getByText('github.labels.add, github.workflow.dispatch').waitFor();
    await page.getByLabel('Where its sessions run').selectOption('fixed');
    await page.getByRole('combobox', { name: 'Configuration', exact: true }).fill('triage-agent');
    await page.getByRole('button', { name: 'Save the automation' }).click();
    const changed = { ...saved, configuration: { strategy: 'fixed', default: 'triage-agent' } };
    await expect.poll(async () => (await host.api(`/automations/${NAME}`)).body).toMatchObject(changed);
    // Where it runs is no part of the instructions: their version stays.
    expect((await host.api(`/automations/${NAME}`)).body).toMatchObject({ workflow: { version: 1 } });
    await expectFine('automation-session');
  });
});

describe('the page of a run', () => {
  it('shows the session at work, its actions and what they wait for', async () => {
    const { page } = person;
    runId = (await asks<{ runId: string }>(host, 'POST', `/automations/${NAME}/run`, { title: 'Refunds twice' })).runId;
    await sessionOf(host, runId, ({ deeds }) => deeds.some(({ what }) => what.endsWith('waiting_approval')));
    await goTo(person, `/runs/${runId}`);
    const session = page.getByRole('region', { name: 'Session' });
    await session.getByText('at work').waitFor();
    await session.getByText('triage-agent', { exact: true }).waitFor();
    await session.getByText('Last activity').waitFor();
    await session.getByText('Must complete before').waitFor();
    await session.getByText('2 of at most 2').waitFor();
    const actions = session.getByRole('list', { name: 'Actions of the session' }).getByRole('listitem');
    await actions.filter({ hasText: 'github.labels.add' }).getByText('Succeeded').waitFor();
    const waiting = actions.filter({ hasText: 'github.workflow.dispatch' });
    await waiting.getByText('Waits for approval').waitFor();
    await expectFine('run-session-at-work');

    await waiting.getByRole('link', { name: 'github.workflow.dispatch' }).click();
    await page.getByRole('link', { name: 'a session', exact: true }).click();
    await page.waitForURL(new RegExp(runId));
  });

  it('shows what the session reported, as soon as it has, without a reload', async () => {
    const { page } = person;
    const { body } = await host.api<{ actions: { actionId: string; status: string }[] }>(`/runs/${runId}/actions`);
    const waiting = body.actions.find(({ status }) => status === 'waiting_approval');
    await host.approve(waiting?.actionId ?? '', APPROVER_KEY);
    const session = page.getByRole('region', { name: 'Session' });
    await session.getByText(': succeeded').waitFor();
    await session.getByText('The session did what the test says.').waitFor();
    await session.getByText('2 of at most 2; 1 more refused').waitFor();
    await expect
      .poll(() => session.getByRole('listitem').filter({ hasText: 'Succeeded' }).count(), { timeout: 30_000 })
      .toBe(2);
    await expectFine('run-session-completed');
    expect(realProblems(person)).toEqual([]);
  });
});
