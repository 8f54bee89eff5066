import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { incident, issueOpened } from '../local/harness/deliveries.ts';
import { startTestHost, type TestHost } from '../local/harness/test-host.ts';
import { startBrowser, type TestBrowser } from './browser.ts';
import { expectToFit, goTo, inConsole, realProblems } from './console-people.ts';

let host: TestHost;
let browser: TestBrowser;
beforeAll(async () => {
  [host, browser] = await Promise.all([startTestHost(), startBrowser()]);
});
afterAll(async () => {
  await browser?.stop();
  await host?.stop();
});

describe('signing in', () => {
  it('from a path that looks like another host stays on this host', async () => {
    const olivia = await inConsole(browser, host, 'Olivia Owner', '/%2F..//evil.example/x');
    await goTo(olivia, '/');
    await olivia.page.getByRole('button', { name: 'Sign out' }).waitFor();
    const direct = await inConsole(browser, host, 'Olivia Owner', `${host.url}//evil.example/x`);
    expect(new URL(direct.page.url()).origin).toBe(host.url);
    await direct.page.getByText('There is no such page').waitFor();
    for (const each of [olivia, direct]) {
      expect(realProblems(each)).toEqual([]);
      await each.close();
    }
  });

  it('with an answer that nobody asked for, or of another issuer, is refused, and no code stays in the address', async () => {
    const opened = await browser.openPage(host.url, '/sign-in?code=stolen&state=invented');
    const { page } = opened;
    await page.getByText('This sign-in was started in another tab or before').waitFor();
    expect(page.url()).toBe(`${host.url}/sign-in`);
    await page.getByRole('button', { name: 'Sign in to acme' }).click();
    await page.getByRole('button', { name: 'Olivia Owner' }).waitFor();
    const state = new URL(page.url()).searchParams.get('state') ?? '';
    expect(state).toHaveLength(43);
    await page.goto(`/sign-in?code=other&state=${state}&iss=https%3A%2F%2Fevil.example`);
    await page.getByText('belongs to another sign-in').waitFor();
    expect(opened.requests.filter((request) => request.startsWith('POST /_oidc/token'))).toEqual([]);
    await opened.close();
  });

  it('leaves no token and no code in storage, cookies, addresses or the history', async () => {
    const olivia = await inConsole(browser, host, 'Olivia Owner', '/runs');
    const { page, requests } = olivia;
    expect(page.url()).toBe(`${host.url}/runs`);
    const stored = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, history.state])',
    );
    expect(stored).not.toMatch(/eyJ|code_verifier|refresh/i);
    expect(requests.filter((request) => /eyJ|token=/.test(request))).toEqual([]);
    // One step back is the page of the issuer, not the address with the code.
    await page.goBack();
    expect(page.url()).not.toMatch(/[?&]code=/);
    await olivia.close();
  });
});

describe('what other sites can do', () => {
  it('no page can be put into a frame, and the API takes no cookie for a sign-in', async () => {
    for (const path of ['/', '/runs/run_1', '/docs', '/_sim']) {
      const { headers } = await host.request('GET', path, {});
      expect([path, headers.get('content-security-policy')]).toEqual([
        path,
        expect.stringContaining("frame-ancestors 'none'"),
      ]);
      expect([path, headers.get('x-content-type-options')]).toEqual([path, 'nosniff']);
    }
    const olivia = await inConsole(browser, host, 'Olivia Owner');
    // As a form of another site would: with the cookies of the browser and without the header.
    const status = await olivia.page.evaluate(
      "fetch('/api/v1/people/ana', { method: 'DELETE', credentials: 'include' }).then(({ status }) => status)",
    );
    expect(status).toBe(401);
    const read = await host.api('/people/ana');
    expect([read.status, read.headers.get('cache-control')]).toEqual([200, 'no-store']);
    await olivia.close();
  });
});

describe('hostile text', () => {
  it('of 100 KB does not slow or widen the pages, and an address that is no web address is no link', async () => {
    const title = `<b>${'Ω\u202e\u0007javascript:alert(1)'.repeat(5_000)}`;
    const runId = await host.fileIncident(incident('long', { short_description: title }));
    const run = await host.waitForRun(runId, ({ status }) => status === 'waiting_approval');
    const approvalId = run.steps.find(({ status }) => status === 'waiting_approval')?.approvalId;
    const issue = issueOpened(77);
    const changed = JSON.parse(JSON.stringify(issue), (key, value) =>
      key === 'html_url' ? 'javascript:alert(1)' : value,
    );
    const [linked = ''] = (await host.sendGithub(changed)).body.runIds;
    await host.waitForRun(linked);
    const olivia = await inConsole(browser, host, 'Olivia Owner');
    const { page } = olivia;
    for (const path of ['/', '/runs', `/approvals/${approvalId}`, `/runs/${runId}`]) {
      await goTo(olivia, path);
      await page.getByText(/^<b>Ω/).first().waitFor();
      await page.setViewportSize({ width: 400, height: 800 });
      await expectToFit(olivia);
      await page.setViewportSize({ width: 1280, height: 900 });
      const shown = await page.locator('body').innerText();
      expect([path, shown.includes('\u202e'), shown.length < 20_000]).toEqual([path, false, true]);
    }
    await goTo(olivia, `/runs/${linked}?view=facts`);
    await page.getByText('javascript:alert(1)').waitFor();
    expect(await page.locator('a[href^="javascript" i]').count()).toBe(0);
    expect(realProblems(olivia)).toEqual([]);
    await olivia.close();
  });
});
