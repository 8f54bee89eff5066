import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seededSysId } from '../../local/simulators/servicenow/seed.ts';
import { incident } from '../local/harness/deliveries.ts';
import { startTestHost, type TestHost } from '../local/harness/test-host.ts';
import { startBrowser, type TestBrowser, type TestPage } from './browser.ts';
import { accessibilityProblems, expectToFit, goTo, inConsole, problemsWhileClockMoves } from './console-people.ts';

let host: TestHost;
let browser: TestBrowser;
let ana: TestPage;
let ben: TestPage;
let olivia: TestPage;

beforeAll(async () => {
  [host, browser] = await Promise.all([startTestHost(), startBrowser()]);
  ben = await inConsole(browser, host, 'Ben Okafor');
  ana = await inConsole(browser, host, 'Ana Ortiz');
  olivia = await inConsole(browser, host, 'Olivia Owner');
});
afterAll(async () => {
  await browser?.stop();
  await host?.stop();
});

/** A new incident that waits for approval: the id of its run and the address of its approval. */
async function waiting(name: string, fields: Record<string, string> = {}) {
  const runId = await host.fileIncident(incident(name, fields));
  const run = await host.waitForRun(runId, ({ status }) => status === 'waiting_approval');
  const approvalId = run.steps.find(({ status }) => status === 'waiting_approval')?.approvalId ?? '';
  return { runId, approvalId, page: `/approvals/${approvalId}` };
}

const approvalOf = async (id: string) =>
  (await host.api<{ status: string; votes: unknown[] }>(`/approvals/${id}`)).body;

describe('the tour', () => {
  it('one click sends the sample incident; a maker reads why they cannot decide, and another person approves', async () => {
    await olivia.page.getByText('Nothing waits for you').waitFor();
    await olivia.page.getByRole('button', { name: 'Send the sample incident' }).click();
    await olivia.page.getByRole('heading', { name: 'Checkout database refuses connections' }).waitFor();
    await olivia.page.getByRole('link', { name: 'Decide on step assign' }).click();

    await ben.page.getByRole('link', { name: 'Checkout database refuses connections' }).click();
    await ben.page.getByText('Sets fields of an incident. It can be undone.').waitFor();
    expect(await ben.page.getByRole('row', { name: /Assignment group/ }).innerText()).toMatch(/empty\s+Database \(/);
    await expect.poll(() => ben.page.title()).toMatch(/^\(1\) Checkout database/);

    // The card in Slack leads to the same page.
    await expect
      .poll(async () => JSON.stringify(await host.calls({ system: 'slack', method: 'POST' })))
      .toContain(ben.page.url());
    await goTo(ana, new URL(ben.page.url()).pathname);
    await ana.page.getByText('You had a hand in this write, so someone else must decide on it.').waitFor();
    expect(await ana.page.getByRole('button', { name: 'Approve' }).count()).toBe(0);

    await ben.page.getByRole('button', { name: 'Approve', exact: true }).click();
    await ben.page.getByRole('button', { name: 'Approve this write' }).click();
    await ben.page.getByText('Approved. The write is made now.').waitFor();
  });

  it('the page of the run becomes current by itself, and the write is at its target once', async () => {
    await olivia.page.getByRole('link', { name: 'Open the run' }).click();
    await olivia.page.locator('.facts').getByText('Succeeded').first().waitFor();
    const [run] = await host.allRuns();
    await olivia.page.getByRole('link', { name: 'Timeline' }).click();
    await olivia.page.getByText(/Waiting for people/).waitFor();
    await olivia.page.getByRole('link', { name: 'History' }).click();
    await olivia.page.getByText('assign: ben voted approve in console').waitFor();
    const writes = (await host.calls({ system: 'servicenow', method: 'PATCH' })).filter(({ path }) =>
      path.includes('incident'),
    );
    expect([run?.status, writes.length]).toEqual(['succeeded', 2]);
  });
});

describe('decisions', () => {
  it('of two people at the same time, one counts and the other reads what happened', async () => {
    const { page, approvalId } = await waiting('both');
    for (const person of [ben, olivia]) {
      await goTo(person, page);
      await person.page.getByRole('button', { name: 'Approve', exact: true }).click();
    }
    await Promise.all(
      [ben, olivia].map(({ page }) => page.getByRole('button', { name: 'Approve this write' }).click()),
    );
    for (const person of [ben, olivia]) {
      await person.page.getByText('What was asked').waitFor();
      await person.page
        .getByText(/approved$/)
        .first()
        .waitFor();
    }
    const { status, votes } = await approvalOf(approvalId);
    expect([status, votes.length]).toEqual(['approved', 1]);
  });

  it('an edited write must be read again: an outdated page cannot decide, and the editor cannot approve', async () => {
    const { page, approvalId } = await waiting('edited');
    await goTo(ben, page);
    await ben.page.getByRole('button', { name: 'Approve', exact: true }).waitFor();
    await goTo(olivia, page);
    await olivia.page.getByRole('button', { name: 'Edit', exact: true }).click();
    await olivia.page.getByLabel('assignment_group').first().fill(PLATFORM);
    await olivia.page.getByRole('button', { name: 'Save the changed write' }).click();
    await olivia.page.getByText('You had a hand in this write').waitFor();

    await ben.page.getByText('This write has changed since you opened the page').waitFor();
    expect(await ben.page.getByRole('button', { name: 'Approve', exact: true }).count()).toBe(0);
    await ben.page.getByRole('button', { name: 'Show the new version' }).click();
    await ben.page.getByRole('cell', { name: PLATFORM }).waitFor();
    await ben.page.keyboard.press('a');
    await ben.page.getByRole('button', { name: 'Approve this write' }).click();
    await expect.poll(async () => (await approvalOf(approvalId)).status).toBe('approved');
  });

  it('an expired sign-in keeps the reason of a rejection', async () => {
    const { page, approvalId } = await waiting('expired');
    await goTo(ben, page);
    await ben.page.getByRole('button', { name: 'Reject', exact: true }).click();
    await ben.page.getByLabel('Reason').fill('the change freeze is on');
    await ben.page.route('**/_oidc/token', (route) =>
      route.fulfill({ status: 400, body: '{"error":"invalid_grant"}' }),
    );
    await host.advance(16 * 60_000);
    await ben.page.getByText('Your sign-in has expired').waitFor();
    await ben.page.unroute('**/_oidc/token');
    // What the API and the issuer refused meanwhile is the point of this test.
    ben.problems.splice(0);
    await ben.page.getByRole('button', { name: 'Sign in again' }).click();
    await ben.page.getByRole('button', { name: 'Ben Okafor' }).click();
    expect(await ben.page.getByLabel('Reason').inputValue()).toBe('the change freeze is on');
    expect(await ben.page.evaluate('JSON.stringify({ ...localStorage, ...sessionStorage })')).not.toMatch(/eyJ/);
    await ben.page.getByRole('button', { name: 'Reject this write' }).click();
    await expect
      .poll(() => approvalOf(approvalId))
      .toMatchObject({
        status: 'rejected',
        votes: [{ person: 'ben', via: 'console', reason: 'the change freeze is on' }],
      });
  });
});

/** The id of the group Platform in the simulated ServiceNow. */
const PLATFORM = seededSysId('Platform');
const HOSTILE = '<img src=x onerror="alert(1)"> \u202Egnp.exe\u202C \u0007 {{7*7}} javascript:alert(1)';

describe('every page', () => {
  it('says in words that there is nothing, and where to go; pages below another one are marked in the navigation', async () => {
    const { page } = await waiting('marked');
    await goTo(ana, page);
    await ana.page.getByText('Why approval is required').waitFor();
    expect(await ana.page.locator('#navigation [aria-current="page"]').innerText()).toBe('Inbox');
    for (const path of ['/runs/run_none', '/approvals/none']) {
      await goTo(ana, path);
      await ana.page.getByText('There is nothing at this address').waitFor();
      expect(await ana.page.getByRole('heading', { level: 1 }).count()).toBe(1);
      expect(await accessibilityProblems(ana)).toEqual([]);
      await ana.page.getByRole('link', { name: 'Go to your inbox' }).click();
      await ana.page.getByRole('heading', { name: 'Inbox' }).waitFor();
    }
    ana.problems.splice(0);
  });

  it('shows hostile text as text, is accessible in both themes and fits into 400 px', async () => {
    const { runId, page } = await waiting('hostile', { short_description: HOSTILE });
    const paths = [
      '/',
      '/runs',
      page,
      ...['steps', 'timeline', 'graph', 'history', 'facts'].map((view) => `/runs/${runId}?view=${view}`),
    ];
    for (const path of paths) {
      await goTo(olivia, path);
      await olivia.page.getByText('<img src=x onerror=').first().waitFor();
      expect(await olivia.page.locator('img').count()).toBe(0);
      expect(await olivia.page.locator('body').innerText()).not.toContain('\u202E');
      for (const theme of ['light', 'dark']) {
        await olivia.page.getByLabel('Theme').selectOption(theme);
        expect([path, theme, await accessibilityProblems(olivia)]).toEqual([path, theme, []]);
      }
      await olivia.page.setViewportSize({ width: 400, height: 800 });
      await expectToFit(olivia);
      await olivia.page.setViewportSize({ width: 1280, height: 900 });
    }
    expect(await olivia.page.title()).toContain('⟦U+202E⟧');
  });

  it('reports no error, no CSP violation and no failed request', () => {
    // The clock was moved past the end of tokens, which are renewed; of two decisions at once one is refused.
    const expected = / 401$| 409$|status of (401|409)/;
    for (const person of [ana, ben, olivia]) {
      expect(problemsWhileClockMoves(person).filter((problem) => !expected.test(problem))).toEqual([]);
    }
  });
});
